cdef Vector moved(const double[:, ::1] rows, Py_ssize_t row, Py_ssize_t at, Vector v) noexcept nogil
cdef Vector turned_by(const double[:, ::1] rows, Py_ssize_t row, Py_ssize_t at, Vector v) noexcept nogil
@cython.locals(size=cython.Py_ssize_t, count=cython.Py_ssize_t, number=cython.Py_ssize_t, k=cython.Py_ssize_t, n=cython.Py_ssize_t, c=cython.Py_ssize_t, a=cython.Py_ssize_t, fit=cython.bint, known=cython.bint)
cpdef write_targets(double[:, ::1] matrices, const int[::1] are_local, const double[:, ::1] to_armature, const int[:, ::1] uses, const double[:, ::1] axes, const double[:, ::1] offsets, float[:, ::1] targets)
@cython.locals(i=cython.Py_ssize_t, j=cython.Py_ssize_t, x=double, y=double, z=double, w=double)
cdef void put_below(double[:, ::1] matrices, Py_ssize_t row, Py_ssize_t at, const double[:, ::1] above, Py_ssize_t above_row) noexcept nogil
@cython.locals(begin=cython.Py_ssize_t, at=cython.Py_ssize_t, pole=cython.Py_ssize_t, i=cython.Py_ssize_t, extent=double, q=Quaternion)
cdef void put_target(const double[:, ::1] matrices, Py_ssize_t row, const double[:, ::1] to_armature, Py_ssize_t above, const int[:, ::1] uses, Py_ssize_t c, const double[:, ::1] axes, const double[:, ::1] offsets, float[:, ::1] targets) noexcept nogil
