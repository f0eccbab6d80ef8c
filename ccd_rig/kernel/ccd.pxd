@cython.locals(n=cython.Py_ssize_t, last=cython.Py_ssize_t, order=cython.Py_ssize_t)
cdef double run_pass(Problem p, Py_ssize_t order, Py_ssize_t number, double fraction) noexcept nogil
cdef double visit(Problem p, Py_ssize_t i, double fraction) noexcept nogil
@cython.locals(n=cython.Py_ssize_t, count=cython.Py_ssize_t, error=cython.double)
cdef double smart_bounce(Problem p, double fraction) noexcept nogil
@cython.locals(best=cython.Py_ssize_t)
cdef double largest_first(Problem p, double fraction) noexcept nogil
cdef bint is_single_goal_met(Problem p) noexcept nogil
cdef void start_carrying(Problem p) noexcept nogil
cdef void place_up_to(Problem p, Py_ssize_t i) noexcept nogil
cdef double carry(Problem p, Py_ssize_t i, Quaternion step) noexcept nogil
cdef double effector_square(Problem p) noexcept nogil
cdef double frame_miss(Problem p, Py_ssize_t k) noexcept nogil
@cython.locals(count=cython.Py_ssize_t)
cdef Py_ssize_t gather_pairs(Problem p, Py_ssize_t i) noexcept nogil
cdef Py_ssize_t add_pair(Problem p, Py_ssize_t count, Vector a, Vector b, double weight) noexcept nogil
cdef Py_ssize_t add_balance(Problem p, Py_ssize_t k, Py_ssize_t i, Py_ssize_t count) noexcept nogil
@cython.locals(count=cython.Py_ssize_t)
cdef double step_joint(Problem p, Py_ssize_t i, double fraction) noexcept nogil
cdef double beyond_comfort(Problem p, Py_ssize_t i, double angle) noexcept nogil
@cython.locals(count=cython.Py_ssize_t)
cdef double desired_angle(Problem p, Py_ssize_t i) noexcept nogil
@cython.locals(m=double[::1])
cdef double best_hinge_turn(Problem p, Py_ssize_t i, Quaternion base) noexcept nogil
cdef double hinge_turn_in_range(Problem p, Py_ssize_t i, double turn) noexcept nogil
@cython.locals(m=double[::1], a=double[::1])
cdef Quaternion best_rotation(Problem p, Py_ssize_t count) noexcept nogil
@cython.locals(a=double[::1], v=double[::1], best=cython.Py_ssize_t)
cdef Quaternion largest_eigenvector(Problem p) noexcept nogil
@cython.locals(slide=cython.Py_ssize_t, gain=cython.double)
cdef double step_slide(Problem p, Py_ssize_t i, Py_ssize_t column, double fraction) noexcept nogil
cdef double slide_place(Problem p, Py_ssize_t slide, Py_ssize_t i) noexcept nogil
cdef double shift_joint(Problem p, Py_ssize_t i, Py_ssize_t slide, Vector axis, double shift) noexcept nogil
cdef void damp_if_worse(Problem p, Py_ssize_t i, Quaternion before, double angle_before) noexcept nogil
cdef void limit_to_windows(Problem p, Py_ssize_t i, Quaternion base, Quaternion before, double angle_before) noexcept nogil
cdef void try_part(Problem p, Py_ssize_t i, Quaternion before, Vector way, double angle_before, double angle, double part) noexcept nogil
cdef bint fits_windows(Problem p, Py_ssize_t i, Quaternion base, Quaternion before) noexcept nogil
@cython.locals(fits=cython.bint)
cdef double shift_in_windows(Problem p, Py_ssize_t i, Vector axis, double shift) noexcept nogil
cdef void solve_tips(Problem p) noexcept nogil
@cython.locals(first=cython.Py_ssize_t, middle=cython.Py_ssize_t)
cdef void bend_tip(Problem p, Py_ssize_t k) noexcept nogil
@cython.locals(first=cython.Py_ssize_t, middle=cython.Py_ssize_t)
cdef void bend_limbs(Problem p) noexcept nogil
@cython.locals(first=cython.Py_ssize_t, middle=cython.Py_ssize_t)
cdef bint bends_backwards(Problem p, Py_ssize_t k) noexcept nogil
@cython.locals(first=cython.Py_ssize_t, middle=cython.Py_ssize_t)
cdef void straighten_limbs(Problem p) noexcept nogil
cdef Vector limb_end(Problem p, Py_ssize_t k) noexcept nogil
@cython.locals(first=cython.Py_ssize_t, middle=cython.Py_ssize_t, done=cython.bint)
cdef bint mirror_limbs(Problem p) noexcept nogil
cdef void turn_joint(Problem p, Py_ssize_t i, Vector axis, double angle) noexcept nogil
@cython.locals(i=cython.Py_ssize_t)
cdef void perturb(Problem p, double angle) noexcept nogil
cdef void point_joint(Problem p, Py_ssize_t i, Vector arm, Vector way) noexcept nogil
@cython.locals(i=cython.Py_ssize_t)
cdef void bend_into_windows(Problem p) noexcept nogil
@cython.locals(i=cython.Py_ssize_t, child=cython.Py_ssize_t)
cdef void stretch(Problem p) noexcept nogil
@cython.locals(i=cython.Py_ssize_t)
cdef void measure_holes(Problem p) noexcept nogil
cdef void share_steps(Problem p, double reduction) noexcept nogil
@cython.locals(i=cython.Py_ssize_t)
cdef double lever_squares(Problem p, Py_ssize_t k, double total, double reduction) noexcept nogil
cdef bint is_out_of_reach(Problem p, Py_ssize_t rank) noexcept nogil
cdef bint is_as_near_as_links_allow(Problem p) noexcept nogil
@cython.locals(i=cython.Py_ssize_t, first=cython.Py_ssize_t)
cdef double shell_distance(Problem p, Py_ssize_t k) noexcept nogil
cdef void swivel(Problem p) noexcept nogil
cdef double bend_turn(Problem p, Vector line) noexcept nogil
cdef void turn_on_line(Problem p, Py_ssize_t i, Vector line, double angle) noexcept nogil
@cython.locals(done=cython.bint)
cdef bint mirror_bends(Problem p) noexcept nogil
@cython.locals(i=cython.Py_ssize_t, root=cython.Py_ssize_t, free=cython.bint, backward=cython.bint)
cdef bint may_mirror(Problem p, Py_ssize_t k) noexcept nogil
@cython.locals(i=cython.Py_ssize_t, root=cython.Py_ssize_t, count=cython.Py_ssize_t, after=cython.Py_ssize_t)
cdef void mirror_bend(Problem p, Py_ssize_t k) noexcept nogil
cdef Vector mirror_image(Vector point, Vector start, Vector way) noexcept nogil
