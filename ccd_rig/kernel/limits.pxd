cpdef project_rotation(const double[::1] row, double w, double x, double y, double z)
@cython.locals(i=cython.Py_ssize_t, count=cython.Py_ssize_t, same=cython.Py_ssize_t, total=cython.Py_ssize_t, number=cython.Py_ssize_t)
cpdef Py_ssize_t nearest_of_many(const double[::1] rows, const int[::1] numbers, const double[::1] rotations, double[::1] nearest, unsigned char[::1] outside) except -1
cpdef int borders_at(const double[::1] row, const double[::1] rotation, double margin, double[::1] normals) except -1
@cython.locals(i=cython.Py_ssize_t, number=cython.Py_ssize_t)
cdef bint are_rows_known(const double[::1] rows, Py_ssize_t count) noexcept nogil
@cython.locals(i=cython.Py_ssize_t, unknown=cython.Py_ssize_t)
cdef bint are_numbers_known(const int[::1] numbers, Py_ssize_t count, Py_ssize_t most) noexcept nogil
cdef Quaternion nearest_allowed(const double[::1] rows, Py_ssize_t at, Quaternion q) noexcept nogil
cdef bint is_allowed(const double[::1] rows, Py_ssize_t at, Quaternion q) noexcept nogil
cdef bint is_same(Quaternion p, Quaternion q) noexcept nogil
cdef Quaternion seen_by_limit(const double[::1] rows, Py_ssize_t at, Quaternion q) noexcept nogil
cdef Quaternion nearest_inside(const double[::1] rows, Py_ssize_t at, Quaternion q) noexcept nogil
cdef bint leads_with_plus(double x, double y, double z) noexcept nogil
cdef (double, double, double) nearest_half_angle(double w, double p, double cm, double sm, double ch, double sh) noexcept nogil
cdef Quaternion nearest_in_cone(const double[::1] rows, Py_ssize_t at, Quaternion q) noexcept nogil
@cython.locals(twist_inside=cython.bint, is_close=cython.bint, step=cython.int, first=cython.int, last=cython.int)
cdef Quaternion nearest_in_ellipse(const double[::1] rows, Py_ssize_t at, Quaternion q) noexcept nogil
@cython.locals(side=cython.int)
cdef double widest_side(const double[::1] rows, Py_ssize_t at) noexcept nogil
cdef bint twist_makes_up(const double[::1] rows, Py_ssize_t at, double w, double p, double g, double k) noexcept nogil
cdef bint twist_turns_to(double reach, double here, double before, double after, double direction, double twist, double nearby, double middle, double half_width) noexcept nogil
cdef double larger(double a, double b) noexcept nogil
cdef double smaller(double a, double b) noexcept nogil
cdef double nearest_turn_of(double angle, double turn) noexcept nogil
cdef double azimuth_reaching(double reach, double here, double beside) noexcept nogil
cdef Quaternion rotation_of_swing(const double[::1] rows, Py_ssize_t at, double on_a, double on_b, double e, double f) noexcept nogil
cdef (double, double) nearest_on_ellipse(double a, double b, double a_lower, double a_upper, double b_lower, double b_upper) noexcept nogil
cdef bint is_whole_circle(double lower, double upper) noexcept nogil
cdef double beyond_range(double angle, double lower, double upper) noexcept nogil
cdef bint is_in_range(double angle, double lower, double upper) noexcept nogil
cdef (double, double) best_in_range(double x, double y, double lower, double upper) noexcept nogil
cdef double component_of(Quaternion q, double axis) noexcept nogil
@cython.locals(leads=cython.bint, end=cython.int)
cdef Quaternion nearest_in_box(const double[::1] rows, Py_ssize_t at, Quaternion q) noexcept nogil
@cython.locals(end=cython.int, edge=cython.int)
cdef (double, double, double, double) nearest_at_end(double a, double b, double c, double of_d, double lower, double upper, double b_lower, double b_upper, double other_lower, double other_upper, double with_other, double least) noexcept nogil
cdef bint is_hinge(const double[::1] rows, Py_ssize_t at) noexcept nogil
cdef Vector hinge_axis(const double[::1] rows, Py_ssize_t at) noexcept nogil
cdef (double, double) hinge_range(const double[::1] rows, Py_ssize_t at) noexcept nogil
@cython.locals(has_frame=cython.bint, count=cython.int, held=cython.int, mask=cython.int, i=cython.int)
cdef int outward_normals(const double[::1] rows, Py_ssize_t at, Quaternion q, double margin, double[::1] normals, Py_ssize_t at_normals) noexcept nogil
cdef bint leaves_limit(const double[::1] rows, Py_ssize_t at, Quaternion q, Vector normal, double margin) noexcept nogil
@cython.locals(silent=cython.bint, is_upper=cython.bint, count=cython.int, held=cython.int)
cdef (int, int) normals_of_swing_twist(const double[::1] rows, Py_ssize_t at, Quaternion q, double margin, double[::1] normals, Py_ssize_t at_normals) noexcept nogil
@cython.locals(a_held=cython.bint, b_held=cython.bint, held=cython.int)
cdef (int, int) normals_of_ellipse(const double[::1] rows, Py_ssize_t at, Quaternion q, double margin, double[::1] normals, Py_ssize_t at_normals, int count) noexcept nogil
cdef double stretch_of_plane(double angle, double along_a, double along_b, double to_a, double to_b) noexcept nogil
cdef Vector normal_of_plane(const double[::1] rows, Py_ssize_t at, double angle, double along_a, double along_b, double to_a, double to_b) noexcept nogil
cdef Vector unit_axis(double axis) noexcept nogil
@cython.locals(is_locked=cython.bint, a_held=cython.bint, b_held=cython.bint, g_held=cython.bint, sum_held=cython.bint, count=cython.int, held=cython.int)
cdef (int, int) normals_of_box(const double[::1] rows, Py_ssize_t at, Quaternion q, double margin, double[::1] normals, Py_ssize_t at_normals) noexcept nogil
cdef double side_of_range(double angle, double lower, double upper) noexcept nogil
