cdef void evaluate(Problem p) noexcept nogil
cdef void linearise(Problem p) noexcept nogil
@cython.locals(count=cython.Py_ssize_t, at=cython.Py_ssize_t)
cdef void update_normals(Problem p) noexcept nogil
cdef void measure_departure(Problem p) noexcept nogil
cdef double hinge_departure(Problem p, Py_ssize_t i, double angle, double reference) noexcept nogil
cdef Vector ball_departure(Problem p, Py_ssize_t i, Vector turn) noexcept nogil
cdef double slide_departure(Problem p, Py_ssize_t i, Py_ssize_t slide, Vector shift) noexcept nogil
cdef double turn_square(Problem p, Py_ssize_t i, Quaternion q, Quaternion reference) noexcept nogil
@cython.locals(column=cython.Py_ssize_t)
cdef double slides_square(Problem p, Py_ssize_t i, Vector shift) noexcept nogil
cdef void measure_region_departure(Problem p) noexcept nogil
cdef void add_ball_departure(Problem p, Py_ssize_t i, Quaternion reference) noexcept nogil
@cython.locals(more=cython.bint)
cdef void compute_step(Problem p, double back, double damping) noexcept nogil
cdef void compute_other_step(Problem p, double back, double damping) noexcept nogil
cdef void solve_in_limits(Problem p, double back, double damping) noexcept nogil
@cython.locals(is_counted=cython.bint, at=cython.Py_ssize_t, first=cython.Py_ssize_t)
cdef void reset_active_set(Problem p) noexcept nogil
cdef bint is_in_step(Problem p, Py_ssize_t k) noexcept nogil
cdef Py_ssize_t blocked_index(Py_ssize_t columns, Py_ssize_t row, Py_ssize_t column) noexcept nogil
@cython.locals(basis=cython.Py_ssize_t, column=cython.Py_ssize_t, k=cython.Py_ssize_t)
cdef void activate_normal(Problem p, Py_ssize_t i, Py_ssize_t n) noexcept nogil
cdef void remove_along(double[::1] values, Py_ssize_t at, Py_ssize_t apart, Vector normal) noexcept nogil
@cython.locals(i=cython.Py_ssize_t, k=cython.Py_ssize_t)
cdef void fix_column(Problem p, Py_ssize_t column, double step) noexcept nogil
@cython.locals(first=cython.Py_ssize_t, moves=cython.bint)
cdef void solve_step(Problem p) noexcept nogil
cdef void factorise(Problem p, double damping) noexcept nogil
@cython.locals(others=cython.Py_ssize_t, column=cython.Py_ssize_t, at=cython.Py_ssize_t, from_a=cython.Py_ssize_t, from_b=cython.Py_ssize_t)
cdef void multiply_row(Problem p, Py_ssize_t k, Py_ssize_t a, double damping) noexcept nogil
cdef void note_product(Problem p, Py_ssize_t a, Py_ssize_t b, double product) noexcept nogil
@cython.locals(
    first=cython.Py_ssize_t,
    j=cython.Py_ssize_t,
    k=cython.Py_ssize_t,
    at=cython.Py_ssize_t,
    row_j=cython.Py_ssize_t,
    from_k=cython.Py_ssize_t,
)
cdef void factorise_symmetric(Problem p) noexcept nogil
@cython.locals(at=cython.Py_ssize_t)
cdef void solve_symmetric(Problem p) noexcept nogil
@cython.locals(best=cython.Py_ssize_t, at=cython.Py_ssize_t, other=cython.Py_ssize_t)
cdef void solve_general(Problem p) noexcept nogil
@cython.locals(more=cython.bint, slide=cython.Py_ssize_t, column=cython.Py_ssize_t)
cdef bint activate_limits(Problem p) noexcept nogil
@cython.locals(more=cython.bint, row=cython.Py_ssize_t)
cdef bint activate_windows(Problem p, double part) noexcept nogil
@cython.locals(more=cython.bint, row=cython.Py_ssize_t)
cdef bint activate_poles(Problem p) noexcept nogil
cdef bint stop_at_bound(Problem p, Py_ssize_t column, double value, double lower, double upper, double scale) noexcept nogil
cdef double longest_turn(Problem p) noexcept nogil
@cython.locals(slide=cython.Py_ssize_t)
cdef void apply_step(Problem p, double part) noexcept nogil
@cython.locals(is_first=cython.bint)
cdef void set_row_gains(Problem p, double part) noexcept nogil
@cython.locals(slow=cython.Py_ssize_t)
cdef bint reach(Problem p, double slow_ratio) noexcept nogil
cdef double summed_turn(Problem p) noexcept nogil
cdef double longest_carried_turn(Problem p) noexcept nogil
cdef double share_pass(Problem p) noexcept nogil
@cython.locals(first=cython.Py_ssize_t, last=cython.Py_ssize_t, x=cython.Py_ssize_t, y=cython.Py_ssize_t, z=cython.Py_ssize_t)
cdef Vector linear_change(Problem p, Py_ssize_t k, const double[::1] v, double part, Vector rows) noexcept nogil
@cython.locals(first=cython.Py_ssize_t, last=cython.Py_ssize_t, x=cython.Py_ssize_t, y=cython.Py_ssize_t, z=cython.Py_ssize_t)
cdef void add_rows(Problem p, Py_ssize_t k, Vector by, double[::1] sums) noexcept nogil
@cython.locals(first=cython.Py_ssize_t)
cdef Vector rows_of(Problem p, Py_ssize_t k, const double[::1] values) noexcept nogil
@cython.locals(first=cython.Py_ssize_t)
cdef void put_rows_of(Problem p, Py_ssize_t k, double[::1] values, Vector rows) noexcept nogil
cdef double predicted_square(Problem p, double part) noexcept nogil
@cython.locals(is_new=cython.bint, is_judged=cython.bint)
cdef void slide(Problem p) noexcept nogil
@cython.locals(is_same=cython.bint, at=cython.Py_ssize_t, is_active=cython.int)
cdef bint is_same_face(Problem p) noexcept nogil
@cython.locals(place=cython.Py_ssize_t)
cdef void note_pair(Problem p) noexcept nogil
@cython.locals(place=cython.Py_ssize_t, count=cython.Py_ssize_t)
cdef void bend_by_pairs(Problem p) noexcept nogil
cdef double approach_goals(Problem p, double aside) noexcept nogil
cdef void return_to_goals(Problem p) noexcept nogil
@cython.locals(has_moved=cython.bint, is_still=cython.bint, is_last=cython.bint, is_better=cython.bint)
cdef bint settle(Problem p) noexcept nogil
@cython.locals(pressed=cython.Py_ssize_t, more=cython.bint)
cdef bint activate_pressed_normals(Problem p, Py_ssize_t i, Vector push, double least) noexcept nogil
@cython.locals(more=cython.bint, column=cython.Py_ssize_t, n=cython.Py_ssize_t)
cdef bint stop_at_borders(Problem p, double most) noexcept nogil
@cython.locals(x=double, y=double, z=double)
cdef void measure_borders(Problem p) noexcept nogil
cdef double border_curvature(Problem p, Py_ssize_t i, Quaternion q, Vector outward, Vector tangent) noexcept nogil
cdef void add_product(double[::1] values, Py_ssize_t at, Vector a, Vector b) noexcept nogil
cdef void expect_residuals(Problem p, double part) noexcept nogil
cdef bint straighten_step(Problem p, double turned) noexcept nogil
@cython.locals(is_missed=cython.bint)
cdef bint set_rank_weights(Problem p, double factor) noexcept nogil
cdef void keep_windows(Problem p) noexcept nogil
cdef bint is_kept(Problem p, Py_ssize_t k) noexcept nogil
cdef bint counts_in_settle(Problem p, Py_ssize_t k) noexcept nogil
@cython.locals(are_met=cython.bint)
cdef double missed_square(Problem p) noexcept nogil
@cython.locals(has_kept=cython.bint)
cdef void measure_forces(Problem p, double pull) noexcept nogil
cdef bint stretches(Problem p, double most) noexcept nogil
cdef void add_force(Problem p, Py_ssize_t k, Py_ssize_t row) noexcept nogil
@cython.locals(row=cython.Py_ssize_t)
cdef double settled_square(Problem p, double pull) noexcept nogil
cdef void return_to_kept_goals(Problem p) noexcept nogil
@cython.locals(is_convex=cython.bint)
cdef double solve_curved(Problem p, double pull, double most) noexcept nogil
cdef double factorise_curved(Problem p, double pull) noexcept nogil
@cython.locals(first=cython.Py_ssize_t, column=cython.Py_ssize_t)
cdef double precondition(Problem p, double shift) noexcept nogil
cdef double square_of(Problem p, const double[::1] values) noexcept nogil
cdef void project_free(Problem p, double[::1] values) noexcept nogil
@cython.locals(i=cython.Py_ssize_t, column=cython.Py_ssize_t)
cdef void curved_product(Problem p, const double[::1] v, double[::1] product, double pull) noexcept nogil
@cython.locals(row=cython.Py_ssize_t, columns=cython.Py_ssize_t, x=cython.Py_ssize_t, y=cython.Py_ssize_t, z=cython.Py_ssize_t, i=cython.Py_ssize_t, first=cython.Py_ssize_t, slides=cython.Py_ssize_t, up=cython.Py_ssize_t)
cdef void add_curvature(Problem p, Py_ssize_t k, const double[::1] v, double[::1] product) noexcept nogil
@cython.locals(i=cython.Py_ssize_t, up=cython.Py_ssize_t)
cdef void add_turn_curvature(Problem p, Py_ssize_t k, const double[::1] v, double[::1] product) noexcept nogil
@cython.locals(root=cython.Py_ssize_t, i=cython.Py_ssize_t, slides=cython.Py_ssize_t, up=cython.Py_ssize_t)
cdef void add_window_curvature(Problem p, Py_ssize_t k, const double[::1] v, double[::1] product) noexcept nogil
cdef Vector joint_turn(Problem p, Py_ssize_t i, const double[::1] v) noexcept nogil
cdef Vector slid(Problem p, Py_ssize_t i, const double[::1] v) noexcept nogil
