cdef void enter_limits(Problem p) noexcept nogil
@cython.locals(is_far=cython.bint, is_near=cython.bint, status=cython.int)
cdef int solve_pose(Problem p) noexcept nogil
cdef double missed_error(Problem p) noexcept nogil
cdef double farthest_turn(Problem p) noexcept nogil
@cython.locals(met=cython.bint)
cdef void follow_targets(Problem p) noexcept nogil
@cython.locals(is_mirrored=cython.bint)
cdef void slide_on_sides(Problem p) noexcept nogil
cdef bint mirror_if_met(Problem p) noexcept nogil
cdef double turn_since(Problem p, Py_ssize_t slot) noexcept nogil
@cython.locals(i=cython.Py_ssize_t)
cdef bint try_reference(Problem p) noexcept nogil
cdef void begin_try(Problem p) noexcept nogil
@cython.locals(rank=cython.Py_ssize_t)
cdef void meet_earlier_ranks(Problem p) noexcept nogil
@cython.locals(rank=cython.Py_ssize_t)
cdef Py_ssize_t first_missed_rank(Problem p) noexcept nogil
cdef void begin(Problem p) noexcept nogil
cdef bint swivel_poles(Problem p) noexcept nogil
cdef bint is_step_optimal(Problem p) noexcept nogil
cdef bint meet(Problem p, double slow_ratio) noexcept nogil
cdef void note_score(Problem p) noexcept nogil
cdef bint is_better(Problem p) noexcept nogil
@cython.locals(last=cython.Py_ssize_t, place=cython.Py_ssize_t)
cdef int compare_scores(Problem p, double tolerance, double part) noexcept nogil
@cython.locals(i=cython.Py_ssize_t)
cdef void load_reference_pose(Problem p) noexcept nogil
cdef void set_best(Problem p) noexcept nogil
cdef void keep_if_better(Problem p) noexcept nogil
@cython.locals(equal=cython.bint, stage=cython.Py_ssize_t)
cdef void enter_windows(Problem p) noexcept nogil
@cython.locals(number=cython.Py_ssize_t, count=cython.Py_ssize_t, is_perturbed=cython.bint, stuck=cython.bint)
cdef int descend_rank(Problem p) noexcept nogil
@cython.locals(status=cython.int)
cdef int descend(Problem p) noexcept nogil
cdef double pass_over(Problem p, Py_ssize_t number, double first) noexcept nogil
cdef void restore_earlier_goals(Problem p) noexcept nogil
cdef double part_of_step(Problem p, double first) noexcept nogil
@cython.locals(i=cython.Py_ssize_t, met=cython.bint)
cdef bint try_start(Problem p, const double[:, ::1] rotations, const double[:, ::1] translations, const int[:, ::1] is_turn, Py_ssize_t number) noexcept nogil
@cython.locals(had_run_out=cython.bint)
cdef int retry(Problem p, const double[:, ::1] rotations, const double[:, ::1] translations, const int[:, ::1] is_turn, int status) noexcept nogil
@cython.locals(number=cython.Py_ssize_t, is_settled=cython.bint)
cdef int minimise_error(Problem p, bint had_run_out) noexcept nogil
@cython.locals(is_settled=cython.bint, are_all=cython.bint, near=cython.bint)
cdef bint solve_ranks(Problem p, double slow_ratio, double slack_part) noexcept nogil
@cython.locals(at=cython.Py_ssize_t, rank=cython.Py_ssize_t, k=cython.Py_ssize_t)
cdef double projected_gradient(Problem p, Py_ssize_t last) noexcept nogil
cdef double largest_part(Problem p) noexcept nogil
cdef void load_pose(Problem p, const double[:, ::1] rotations, const double[:, ::1] translations, Py_ssize_t number) noexcept nogil
cdef void load_bones(Problem p, const double[:, ::1] offsets, const double[:, ::1] rests, Py_ssize_t number) noexcept nogil
cdef void load_sides(Problem p, const double[:, ::1] rotations, Py_ssize_t number) noexcept nogil
cdef void load_reference(Problem p, const double[:, ::1] rotations, const double[:, ::1] translations, Py_ssize_t number) noexcept nogil
@cython.locals(size=cython.Py_ssize_t, joints=cython.Py_ssize_t, goals=cython.Py_ssize_t, references=cython.Py_ssize_t, starts=cython.Py_ssize_t, row=cython.Py_ssize_t, k=cython.Py_ssize_t, n=cython.Py_ssize_t, start=cython.Py_ssize_t, status=cython.int)
cpdef solve_poses(Problem p, double[:, ::1] rotations, double[:, ::1] translations, const double[:, ::1] targets, const double[:, ::1] weights, const double[:, ::1] pole_angles, const double[:, ::1] offsets, const double[:, ::1] rests, const double[::1] tolerances, const double[:, ::1] reference_rotations, const double[:, ::1] reference_translations, const double[:, ::1] side_rotations, const double[:, ::1] start_rotations, const double[:, ::1] start_translations, const int[:, ::1] start_is_turn, int[::1] statuses, int[::1] steps, double[:, ::1] distances, double[:, ::1] misses, bint is_retry)
@cython.locals(n=cython.Py_ssize_t)
cdef void round_pose(Problem p) noexcept nogil
cdef check_size(const double[:, ::1] values, Py_ssize_t rows, Py_ssize_t columns)
cdef check_size_or_one(const double[:, ::1] values, Py_ssize_t rows, Py_ssize_t columns)
cdef check_ready(Problem p)
@cython.locals(row=cython.Py_ssize_t, k=cython.Py_ssize_t)
cdef check_numbers(str name, const double[:, ::1] values, Py_ssize_t width)
@cython.locals(row=cython.Py_ssize_t, k=cython.Py_ssize_t, n=cython.Py_ssize_t, turns=cython.bint)
cdef check_targets(Problem p, const double[:, ::1] targets)
@cython.locals(size=cython.Py_ssize_t, joints=cython.Py_ssize_t, k=cython.Py_ssize_t, n=cython.Py_ssize_t)
cpdef measure_placed(Problem p, const double[:, ::1] heads, const double[:, ::1] frames, const double[:, ::1] targets, const double[:, ::1] pole_angles, double[:, ::1] distances, double[:, ::1] misses)
cpdef set_search(Problem p, Py_ssize_t order, double fraction, double feedback, double reduction, double stall, Py_ssize_t most, Py_ssize_t budget, bint only_ccd, bint stays_local, bint starts_at_reference, bint rounds)
@cython.locals(a=cython.Py_ssize_t, b=cython.Py_ssize_t)
cpdef evaluate_at(Problem p, const double[:, ::1] rotations, const double[:, ::1] translations, const double[:, ::1] targets, double[::1] residual, double[:, ::1] slope)
