@cython.locals(r=cython.Py_ssize_t, m=cython.Py_ssize_t)
cpdef write_departures(const double[:, ::1] base, const unsigned char[:, ::1] moves, const Py_ssize_t[::1] joints, const Py_ssize_t[::1] rows, const double[:, ::1] rotations, double[:, ::1] turned)
@cython.locals(r=cython.Py_ssize_t, m=cython.Py_ssize_t, n=cython.Py_ssize_t)
cpdef carry_departures(const double[:, ::1] base, const unsigned char[:, ::1] moves, const Py_ssize_t[::1] joints, const Py_ssize_t[::1] rows, const double[:, ::1] turned, double[:, ::1] carried)
@cython.locals(frames=cython.Py_ssize_t, count=cython.Py_ssize_t, r=cython.Py_ssize_t, m=cython.Py_ssize_t)
cpdef sweep_departures(const double[:, ::1] turned, const unsigned char[:, ::1] moves, const Py_ssize_t[::1] before, const Py_ssize_t[::1] after, const double[::1] smoothness, cython.bint relaxes, const Py_ssize_t[::1] rows, double[:, ::1] swept)
@cython.locals(r=cython.Py_ssize_t, m=cython.Py_ssize_t, i=cython.Py_ssize_t, row=cython.Py_ssize_t, beside=cython.Py_ssize_t, side=cython.Py_ssize_t, shift=Vector, q=Quaternion, start=Quaternion, carried=Quaternion, share=cython.double)
cpdef sum_departures(Problem p, const double[:, ::1] base, const double[:, ::1] shifts, const unsigned char[:, ::1] moves, const Py_ssize_t[::1] joints, const Py_ssize_t[::1] before, const Py_ssize_t[::1] after, const double[::1] smoothness, const double[:, ::1] turned, const Py_ssize_t[::1] rows, const double[:, ::1] rotations, const double[:, ::1] translations, double[::1] sums)
@cython.locals(r=cython.Py_ssize_t, m=cython.Py_ssize_t)
cpdef write_largest_angles(const double[:, ::1] a, const double[:, ::1] b, double[::1] largest)
cdef check_motion(const double[:, ::1] base, const unsigned char[:, ::1] moves, const Py_ssize_t[::1] joints, const Py_ssize_t[::1] rows, const double[:, ::1] rotations, const double[:, ::1] turned)
@cython.locals(m=cython.Py_ssize_t)
cdef check_poses(const double[:, ::1] base, const unsigned char[:, ::1] moves, const Py_ssize_t[::1] joints, const Py_ssize_t[::1] rows, const double[:, ::1] rotations)
@cython.locals(frames=cython.Py_ssize_t)
cdef check_neighbours(const unsigned char[:, ::1] moves, const Py_ssize_t[::1] before, const Py_ssize_t[::1] after, const double[::1] smoothness, const double[:, ::1] turned)
@cython.locals(side=cython.Py_ssize_t, frame=cython.Py_ssize_t)
cdef check_frame(const double[:, ::1] base, const double[:, ::1] shifts, const Py_ssize_t[::1] before, const Py_ssize_t[::1] after, const double[::1] smoothness, const double[:, ::1] turned, Py_ssize_t row)
@cython.locals(n=cython.Py_ssize_t)
cdef check_numbers_of_frames(const Py_ssize_t[::1] numbers, Py_ssize_t first, Py_ssize_t end)
@cython.locals(side=cython.Py_ssize_t, beside=cython.Py_ssize_t)
cdef Quaternion optimal_departure(const double[:, ::1] turned, const unsigned char[:, ::1] moves, const Py_ssize_t[::1] before, const Py_ssize_t[::1] after, const double[::1] smoothness, Py_ssize_t row, Py_ssize_t m) noexcept nogil
cdef double angle_between(Quaternion a, Quaternion b) noexcept nogil
cdef Quaternion on_same_side(Quaternion q, Quaternion other) noexcept nogil
cdef Quaternion rotation_in(const double[:, ::1] rows, Py_ssize_t row, Py_ssize_t joint) noexcept nogil
cdef Vector vector_in(const double[:, ::1] rows, Py_ssize_t row, Py_ssize_t joint) noexcept nogil
cdef void put_rotation(double[:, ::1] rows, Py_ssize_t row, Py_ssize_t joint, Quaternion q) noexcept nogil
