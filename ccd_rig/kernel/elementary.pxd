cdef (double, double) sin_cos(double x) noexcept nogil
cpdef double sin(double x) noexcept nogil
cpdef double cos(double x) noexcept nogil
cpdef double atan2(double y, double x) noexcept nogil
cdef double exp(double x) noexcept nogil
