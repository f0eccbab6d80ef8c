cdef void enter_limits(Problem p) noexcept nogil
cdef bint solve_pose(Problem p, Py_ssize_t most) noexcept nogil
cdef void load_pose(Problem p, const double[:, ::1] rotations, const double[:, ::1] translations, Py_ssize_t number) noexcept nogil
cdef void load_reference(Problem p, const double[:, ::1] rotations, const double[:, ::1] translations, Py_ssize_t number) noexcept nogil
@cython.locals(size=cython.Py_ssize_t, starts=cython.Py_ssize_t, shared=cython.bint, k=cython.Py_ssize_t, most_steps=cython.Py_ssize_t)
cpdef solve_poses(Problem p, double[:, ::1] rotations, double[:, ::1] translations, const double[:, ::1] targets, const double[:, ::1] reference_rotations, const double[:, ::1] reference_translations, int[::1] statuses, int[::1] steps, double[:, ::1] distances, double[:, ::1] misses, Py_ssize_t most)
cpdef check_slopes(Problem p, double[:, ::1] rotations, double[:, ::1] translations, const double[:, ::1] targets, double[:, ::1] slope, double[:, ::1] residual)
