@cython.locals(r=cython.Py_ssize_t, m=cython.Py_ssize_t)
cpdef write_departures(const double[:, ::1] base, const unsigned char[:, ::1] moves, const Py_ssize_t[::1] joints, const Py_ssize_t[::1] rows, const double[:, ::1] rotations, double[:, ::1] turned)
@cython.locals(r=cython.Py_ssize_t, m=cython.Py_ssize_t, n=cython.Py_ssize_t)
cpdef carry_departures(const double[:, ::1] base, const unsigned char[:, ::1] moves, const Py_ssize_t[::1] joints, const Py_ssize_t[::1] rows, const double[:, ::1] turned, double[:, ::1] carried)
@cython.locals(frames=cython.Py_ssize_t, count=cython.Py_ssize_t, r=cython.Py_ssize_t, m=cython.Py_ssize_t)
cpdef sweep_departures(const double[:, ::1] turned, const unsigned char[:, ::1] moves, const Py_ssize_t[::1] before, const Py_ssize_t[::1] after, const double[::1] smoothness, const Py_ssize_t[::1] rows, double[:, ::1] swept)
@cython.locals(r=cython.Py_ssize_t, m=cython.Py_ssize_t)
cpdef write_largest_angles(const double[:, ::1] a, const double[:, ::1] b, double[::1] largest)
@cython.locals(count=cython.Py_ssize_t, m=cython.Py_ssize_t)
cdef check_motion(const double[:, ::1] base, const unsigned char[:, ::1] moves, const Py_ssize_t[::1] joints, const Py_ssize_t[::1] rows, const double[:, ::1] rotations, const double[:, ::1] turned)
@cython.locals(n=cython.Py_ssize_t)
cdef check_numbers_of_frames(const Py_ssize_t[::1] numbers, Py_ssize_t first, Py_ssize_t end)
@cython.locals(side=cython.Py_ssize_t, beside=cython.Py_ssize_t)
cdef Quaternion optimal_departure(const double[:, ::1] turned, const unsigned char[:, ::1] moves, const Py_ssize_t[::1] before, const Py_ssize_t[::1] after, const double[::1] smoothness, Py_ssize_t row, Py_ssize_t m) noexcept nogil
cdef double angle_between(Quaternion a, Quaternion b) noexcept nogil
cdef Quaternion on_same_side(Quaternion q, Quaternion other) noexcept nogil
cdef Quaternion rotation_in(const double[:, ::1] rows, Py_ssize_t row, Py_ssize_t joint) noexcept nogil
cdef void put_rotation(double[:, ::1] rows, Py_ssize_t row, Py_ssize_t joint, Quaternion q) noexcept nogil
