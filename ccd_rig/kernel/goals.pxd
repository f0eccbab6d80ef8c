@cython.locals(kind=cython.int)
cdef void measure(Problem p) noexcept nogil
cdef void set_weights(Problem p) noexcept nogil
cdef bint is_current(Problem p, Py_ssize_t k) noexcept nogil
cdef bint has_room(Problem p, Py_ssize_t k) noexcept nogil
@cython.locals(row=cython.Py_ssize_t, joint=cython.Py_ssize_t)
cdef void measure_goal(Problem p, Py_ssize_t k) noexcept nogil
cdef double length_factor(Problem p, Py_ssize_t k) noexcept nogil
cdef double angle_factor(Problem p, Py_ssize_t k) noexcept nogil
cdef void put_rows(Problem p, Py_ssize_t row, Vector v) noexcept nogil
cdef Vector goal_point(Problem p, Py_ssize_t k) noexcept nogil
cdef Vector window_line(Problem p, Py_ssize_t k) noexcept nogil
cdef Vector tangent_towards(Vector axis, Vector target) noexcept nogil
cdef double pole_angle_of(Problem p, Py_ssize_t k) noexcept nogil
@cython.locals(joint=cython.Py_ssize_t)
cdef Vector heads_between(Problem p, Py_ssize_t k) noexcept nogil
cdef double pole_angle(Vector line, Vector between, Vector side, Vector axis, double scale, double turn, double[::1] bend_and_side) noexcept nogil
cdef Vector chain_bend(Vector line, Vector between, Vector axis, double scale) noexcept nogil
@cython.locals(k=cython.Py_ssize_t, count=cython.Py_ssize_t, known=cython.bint)
cpdef measure_bend(const double[::1] points, const double[::1] axis, double scale, double[::1] bend)
cdef double pole_play(double sine) noexcept nogil
cdef double smooth_step(double x) noexcept nogil
cdef void gather_mass(Problem p) noexcept nogil
cdef Vector rigid_moment(Problem p, Py_ssize_t i) noexcept nogil
cdef Vector total_moment(Problem p) noexcept nogil
@cython.locals(at=cython.Py_ssize_t)
cdef void slopes(Problem p) noexcept nogil
cdef void place_columns(Problem p, Py_ssize_t i) noexcept nogil
cdef void put_axis(Problem p, Py_ssize_t column, Vector v) noexcept nogil
cdef Vector counted_part(Problem p, Py_ssize_t k, Vector v) noexcept nogil
cdef void goal_slopes(Problem p, Py_ssize_t k) noexcept nogil
@cython.locals(i=cython.Py_ssize_t, x=cython.Py_ssize_t, y=cython.Py_ssize_t, z=cython.Py_ssize_t)
cdef void point_rows(Problem p, Py_ssize_t row, Py_ssize_t joint, Vector point, double factor) noexcept nogil
cdef void joint_slopes(Problem p, Py_ssize_t at, Py_ssize_t i, Vector moment, Vector force) noexcept nogil
@cython.locals(i=cython.Py_ssize_t, at=cython.Py_ssize_t)
cdef void point_row(Problem p, Py_ssize_t row, Py_ssize_t joint, Vector point, Vector force) noexcept nogil
@cython.locals(driver=cython.Py_ssize_t)
cdef void coupled_rows(Problem p, Py_ssize_t at, Py_ssize_t i, Vector force) noexcept nogil
@cython.locals(i=cython.Py_ssize_t, at=cython.Py_ssize_t)
cdef void turn_row(Problem p, Py_ssize_t row, Py_ssize_t joint, Vector moment) noexcept nogil
cdef void orientation_rows(Problem p, Py_ssize_t k, double factor) noexcept nogil
cdef double jacobian_factor(double square) noexcept nogil
cdef void direction_rows(Problem p, Py_ssize_t k, double factor) noexcept nogil
@cython.locals(joint=cython.Py_ssize_t, root=cython.Py_ssize_t, row=cython.Py_ssize_t, inside=cython.bint)
cdef void pole_row(Problem p, Py_ssize_t k, double factor) noexcept nogil
@cython.locals(i=cython.Py_ssize_t, at=cython.Py_ssize_t, up=cython.Py_ssize_t, is_below=cython.bint)
cdef void force_row(Problem p, Py_ssize_t row, Py_ssize_t joint, Py_ssize_t root, Vector point, Vector force, Vector by_head, Vector at_root) noexcept nogil
cdef Vector reject(Vector v, Vector way) noexcept nogil
cdef double share_slope(double size, double full) noexcept nogil
@cython.locals(x=cython.Py_ssize_t, y=cython.Py_ssize_t, z=cython.Py_ssize_t, i=cython.Py_ssize_t, driver=cython.Py_ssize_t)
cdef void balance_rows(Problem p, Py_ssize_t k, double factor) noexcept nogil
