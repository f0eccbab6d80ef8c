cdef class Problem

cdef double[::1] zeros(Py_ssize_t count)
cdef void forward(Problem p) noexcept nogil
@cython.locals(up=cython.int)
cdef void place(Problem p, Py_ssize_t i) noexcept nogil
cdef void place_below(double[::1] heads, double[::1] frames, double[::1] bases, Py_ssize_t i, Py_ssize_t up, bint inherits, Vector offset, Quaternion rest, Vector shift, Quaternion turn) noexcept nogil
@cython.locals(joints=cython.Py_ssize_t, size=cython.Py_ssize_t, k=cython.Py_ssize_t, i=cython.Py_ssize_t, n=cython.Py_ssize_t, a=cython.Py_ssize_t, b=cython.Py_ssize_t, c=cython.Py_ssize_t, d=cython.Py_ssize_t, head=cython.double[::1], frame=cython.double[::1], base=cython.double[::1])
cpdef place_joints(const int[::1] parent, const int[::1] inherits, const double[:, ::1] offsets, const double[:, ::1] rests, const double[:, ::1] rotations, const double[:, ::1] translations, double[:, ::1] heads, double[:, ::1] frames)
@cython.locals(row=cython.Py_ssize_t, column=cython.Py_ssize_t)
cdef check_rows(const double[:, ::1] values, Py_ssize_t rows, Py_ssize_t columns)
@cython.locals(first=cython.Py_ssize_t, end=cython.Py_ssize_t)
cdef (double, double) coupled_shift(Problem p, Py_ssize_t coupling) noexcept nogil
@cython.locals(at=cython.Py_ssize_t, last=cython.Py_ssize_t, before=cython.Py_ssize_t, after=cython.Py_ssize_t)
cdef (double, double) spline_at(const double[::1] knots, Py_ssize_t first, Py_ssize_t end, double angle) noexcept nogil
@cython.locals(k=cython.Py_ssize_t, count=cython.Py_ssize_t, size=cython.Py_ssize_t, known=cython.bint)
cpdef evaluate_spline(const double[::1] knots, const double[::1] angles, double[::1] values, double[::1] slopes)
