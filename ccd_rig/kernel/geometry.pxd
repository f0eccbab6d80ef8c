cdef struct Vector:
    double x, y, z

cdef struct Quaternion:
    double w, x, y, z

cdef Vector add(Vector a, Vector b) noexcept nogil
cdef Vector subtract(Vector a, Vector b) noexcept nogil
cdef Vector scaled(Vector a, double factor) noexcept nogil
cdef double dot(Vector a, Vector b) noexcept nogil
cdef Vector cross(Vector a, Vector b) noexcept nogil
cdef double length(Vector a) noexcept nogil
cdef Vector direction_of(Vector a) noexcept nogil
@cython.locals(size=double)
cdef Vector perpendicular(Vector a) noexcept nogil
cdef Quaternion conjugate(Quaternion q) noexcept nogil
cdef Quaternion multiply(Quaternion a, Quaternion b) noexcept nogil
cdef Quaternion unit(Quaternion q) noexcept nogil
cdef double size_of(Quaternion q) noexcept nogil
cdef Quaternion opposite(Quaternion q) noexcept nogil
@cython.locals(sizes_x=double, sizes_y=double, sizes_z=double, largest=double, q=Quaternion)
cdef Quaternion rotation_to(Vector x, Vector y, Vector z) noexcept nogil
@cython.locals(size_y=double, size_z=double)
cdef Quaternion rotation_along(Vector y, Vector z) noexcept nogil
cdef Vector rotate(Quaternion q, Vector v) noexcept nogil
cdef Vector rotate_back(Quaternion q, Vector v) noexcept nogil
cdef Quaternion exponential(Vector v) noexcept nogil
cdef Vector logarithm(Quaternion q) noexcept nogil
cdef Quaternion axis_rotation(Vector axis, double angle) noexcept nogil
cdef double twist_angle(Quaternion q, Vector axis) noexcept nogil
cdef double angle_of(Quaternion q) noexcept nogil
cdef Quaternion between(Vector a, Vector b) noexcept nogil
cdef double opening_turn(Vector upper, Vector lower, Vector axis, double distance, bint to_other_side) noexcept nogil
cdef double turn_towards(Vector axis, Vector a, Vector b) noexcept nogil
cdef double wrapped(double angle, double middle) noexcept nogil
cdef double single(double x) noexcept nogil
cdef Vector vector_at(const double[::1] values, Py_ssize_t at) noexcept nogil
cdef Quaternion quaternion_at(const double[::1] values, Py_ssize_t at) noexcept nogil
cdef void put_vector(double[::1] values, Py_ssize_t at, Vector v) noexcept nogil
cdef void put_quaternion(double[::1] values, Py_ssize_t at, Quaternion q) noexcept nogil
@cython.locals(n=cython.Py_ssize_t, y=Vector, z=Vector, q=Quaternion)
cpdef write_rotations(const double[:, ::1] matrices, double[:, ::1] rotations, bint are_skewed)
@cython.locals(n=cython.Py_ssize_t, k=cython.Py_ssize_t, square=double, size=double)
cpdef write_units(const double[:, ::1] rows, double[:, ::1] units)
@cython.locals(n=cython.Py_ssize_t, a=Vector, b=Vector, c=Vector, shift=Vector, across=Vector, volume=double)
cpdef write_locations(const double[:, ::1] shifts, const double[:, ::1] translations, double[:, ::1] locations)
@cython.locals(n=cython.Py_ssize_t, q=Quaternion, v=Vector)
cpdef write_rotated(const double[:, ::1] rotations, const double[:, ::1] vectors, double[:, ::1] rotated)
