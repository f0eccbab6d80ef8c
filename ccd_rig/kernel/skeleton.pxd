cdef int[::1] counts(Py_ssize_t count)
@cython.locals(values=double[::1], k=cython.Py_ssize_t)
cdef double[::1] checked_doubles(tables, name, Py_ssize_t count)
@cython.locals(values=double[::1], k=cython.Py_ssize_t)
cdef double[::1] checked_sizes(tables, name, Py_ssize_t count)
@cython.locals(row=cython.Py_ssize_t, k=cython.Py_ssize_t, square=cython.double)
cdef check_units(name, double[::1] values, Py_ssize_t width, Py_ssize_t count)
@cython.locals(values=int[::1], k=cython.Py_ssize_t)
cdef int[::1] checked_indices(tables, name, Py_ssize_t count, Py_ssize_t least, Py_ssize_t most)
@cython.locals(starts=int[::1], k=cython.Py_ssize_t)
cdef int[::1] checked_starts(tables, name, Py_ssize_t count, Py_ssize_t most)

cdef class Problem:
    cdef readonly Py_ssize_t joints, goals, columns, rows, slides, couplings, steps
    cdef readonly double reach, position_tolerance, angle_tolerance
    cdef double total_mass, met_ratio
    cdef readonly bint is_ready, is_busy
    cdef int[::1] parent, inherits, width
    cdef double[::1] offset, rest, limit, region, metric, mobility, mass, mass_point
    cdef int[::1] first_slide
    cdef double[::1] slide_axis, slide_range
    cdef int[::1] coupled_joint, coupled_driver, first_knot
    cdef double[::1] coupled_axis, knots
    cdef int[::1] goal_kind, goal_joint, goal_root, goal_rank, goal_axis_joint, first_row, serves
    cdef double[::1] goal_point, goal_weight, goal_axis, goal_scale, goal_angle, target
    cdef bint masked, has_reference
    cdef int[::1] first_column, column_joint, column_slide, first_span, span_start, span_end, first_goal, joint_goal, evaluated
    cdef Py_ssize_t evaluated_count
    cdef double[::1] rotation, translation, angle
    cdef double[::1] reference_rotation, side_rotation, reference_translation, reference_angle
    cdef double[::1] head, frame, base, shift_base, below, saved
    cdef double[::1] column_axis, slope, serving, residual, departure_gradient, distance, miss, play, turned, bend_share
    cdef double square, error_ratio, departure_square
    cdef double[::1] row_damping, row_gain, force, expected, rank_weight
    cdef double earlier_weight
    cdef bint only_kept, is_settling, has_missed_earlier, is_stationary
    cdef double[::1] normals, active_basis
    cdef int[::1] normal_count, normal_pairs, is_active, active_count
    cdef double[::1] free_slope, system, right, step, fixed_step, free_gradient
    cdef Py_ssize_t pair_count
    cdef double[::1] pair_step, pair_change, pair_inverse, pair_part
    cdef bint is_free
    cdef int[::1] face
    cdef double[::1] old_gradient, old_step, return_step, right_side, remainder, conditioned, direction, product, turn_of_step, border
    cdef int[::1] is_fixed
    cdef double[::1] max_step, comfort, row_offset, first_residual
    cdef int[::1] goal_tip, above, lever_joint, next_moving, tip_first, tip_middle, limb_first, limb_middle, side_first, side_middle, side_last, moving, place_of
    cdef bint is_rigid, has_windows, has_limbs, has_sides, has_tips, has_poles, is_alone, is_single, can_share
    cdef readonly Py_ssize_t moving_count
    cdef Py_ssize_t placed, stage, last_rank
    cdef double[::1] effector, effector_frame, share, angle_order, hole, profile, first_pair, bend, davenport, eigenvectors
    cdef double last_turn
    cdef Py_ssize_t order
    cdef double fraction, feedback, reduction, stall
    cdef int[::1] is_moving, in_tip
    cdef double[::1] mirrored
    cdef bint to_region, likes_regions, stays_local, starts_at_reference, rounds, by_passes, only_ccd, is_equal, has_comfort
    cdef Py_ssize_t most, last_step
    cdef readonly bint ran_out
    cdef int[::1] row_is_active, is_met
    cdef double[::1] gradient, score, best_score, start_distance
    cdef Py_ssize_t budget

@cython.locals(most=cython.Py_ssize_t, spans=cython.Py_ssize_t, listed=cython.Py_ssize_t, k=cython.Py_ssize_t, i=cython.Py_ssize_t, start=cython.int, end=cython.int)
cdef list_columns(Problem p)
@cython.locals(joint=cython.Py_ssize_t, axis_joint=cython.Py_ssize_t)
cdef bint may_change(Problem p, Py_ssize_t k, Py_ssize_t i) noexcept nogil
cdef void set_tolerance(Problem p, double position_tolerance) noexcept nogil
cdef double angle_in_range(Problem p, Py_ssize_t i, double angle) noexcept nogil
cdef void set_angle(Problem p, Py_ssize_t i, double angle) noexcept nogil
cdef void read_angle(Problem p, Py_ssize_t i) noexcept nogil
cdef void set_rotation(Problem p, Py_ssize_t i, Quaternion rotation) noexcept nogil
cdef void set_translation(Problem p, Py_ssize_t i, Vector translation) noexcept nogil
cdef void note_motion(Problem p, Py_ssize_t i) noexcept nogil
@cython.locals(at=cython.Py_ssize_t)
cdef void save(Problem p, Py_ssize_t slot) noexcept nogil
@cython.locals(at=cython.Py_ssize_t, shifts=cython.Py_ssize_t, angles=cython.Py_ssize_t, has_moved=cython.bint)
cdef void restore(Problem p, Py_ssize_t slot) noexcept nogil
cdef void clamp_slide(Problem p, Py_ssize_t slide, Py_ssize_t i) noexcept nogil
cdef void copy_reference_shift(Problem p, Py_ssize_t slide, Py_ssize_t i) noexcept nogil
