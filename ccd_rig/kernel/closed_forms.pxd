cdef struct Placed:
    Quaternion rotation
    bint fits

cdef struct Stand:
    Vector head
    Quaternion base
    Vector direction
    Vector axis

@cython.locals(k=cython.Py_ssize_t)
cpdef soften(const double[::1] distances, const double[::1] lengths, const double[::1] softs, const double[::1] bases, const double[::1] apart, double[::1] eased)
@cython.locals(k=cython.Py_ssize_t)
cdef check_softness(const double[::1] values, Py_ssize_t count)
@cython.locals(size=cython.Py_ssize_t, count=cython.Py_ssize_t, k=cython.Py_ssize_t, n=cython.Py_ssize_t, links=cython.int, is_link=cython.bint, soft=double, whole=double, root=Vector, end=Vector, wanted=Vector, rest=Vector, way=Vector, present=double, distance=double, straight=double, eased=double, resting=double, share=double)
cpdef int ease_limbs(const double[:, ::1] places, const double[:, ::1] rests, const double[:, ::1] ends, const double[::1] softs, const double[::1] factors, double[:, ::1] points, double[:, ::1] limbs) except -1
cdef Vector place_in(const double[:, ::1] rows, Py_ssize_t row, Py_ssize_t number) noexcept nogil
cdef double link_between(const double[:, ::1] places, Py_ssize_t row, Py_ssize_t number) noexcept nogil
@cython.locals(eased=double, kept=double, part=double)
cdef double stretched_length(double distance, double extent, double soft, double base, double apart) noexcept nogil
cdef double eased_distance(double distance, double extent, double soft) noexcept nogil
@cython.locals(i=cython.Py_ssize_t)
cdef void enter_chain(Problem p, const double[:, ::1] rotations, const double[:, ::1] translations, const double[:, ::1] offsets, const double[:, ::1] rests, const double[:, ::1] target) noexcept nogil
@cython.locals(i=cython.Py_ssize_t, n=cython.Py_ssize_t, joints=cython.Py_ssize_t)
cdef check_chain(Problem p, Py_ssize_t least, const double[:, ::1] rotations, const double[:, ::1] translations, const double[:, ::1] offsets, const double[:, ::1] rests, const double[:, ::1] target)
@cython.locals(first=cython.Py_ssize_t, middle=cython.Py_ssize_t, n=cython.Py_ssize_t, has_pole=cython.bint, limited=cython.bint)
cpdef solve_two_bones(Problem p, double[:, ::1] rotations, const double[:, ::1] translations, const double[:, ::1] offsets, const double[:, ::1] rests, const double[:, ::1] target, const double[:, ::1] pole, double pole_angle, double soft, double extension, double part, bint keeps_limited)
cdef void turn_part(Problem p, Py_ssize_t i, Quaternion before, double part) noexcept nogil
cdef Vector upper_bone(Problem p, Py_ssize_t first, Py_ssize_t middle) noexcept nogil
cdef Vector lower_bone(Problem p, Py_ssize_t middle) noexcept nogil
cdef Vector bent_arm(Problem p, Py_ssize_t first, Py_ssize_t middle, Quaternion bent) noexcept nogil
@cython.locals(limited=cython.bint, side=cython.int, number=cython.int)
cdef bint bend_and_aim(Problem p, Py_ssize_t first, Py_ssize_t middle, double distance, double good, Vector pole, bint has_pole, double pole_angle) noexcept nogil
cdef double miss_of(Problem p, Py_ssize_t first, Py_ssize_t middle, Quaternion bent, Quaternion aimed) noexcept nogil
@cython.locals(is_bent=cython.bint)
cdef Vector bend_axis(Problem p, Py_ssize_t first, Py_ssize_t middle, int number, Vector pole, bint has_pole, double pole_angle) noexcept nogil
cdef Vector across(Vector a, Vector line) noexcept nogil
@cython.locals(at=cython.Py_ssize_t)
cdef Quaternion aim(Problem p, Py_ssize_t first, Py_ssize_t middle, Quaternion bent, bint is_other_side, Vector pole, bint has_pole, double pole_angle) noexcept nogil
cdef Quaternion swivelled(Problem p, Py_ssize_t first, Quaternion arc, Vector line, double angle) noexcept nogil
cdef double violation(Problem p, Py_ssize_t i, Quaternion q) noexcept nogil
@cython.locals(step=cython.int, side=cython.int)
cdef double allowed_swivel(Problem p, Py_ssize_t first, Quaternion arc, Vector line, double twist) noexcept nogil
@cython.locals(number=cython.int)
cdef Vector bend_normal(Problem p, Py_ssize_t first, Py_ssize_t middle, Quaternion bent, bint is_other_side, Vector pole, bint has_pole, double pole_angle) noexcept nogil
cdef double twist_to_pole(Vector line, Vector pole, double pole_angle, Vector upper, Vector normal) noexcept nogil
cdef Quaternion arc_across(Vector a, Vector b, Vector normal) noexcept nogil
@cython.locals(i=cython.Py_ssize_t, n=cython.Py_ssize_t, beyond=cython.double[::1])
cpdef solve_target_triangles(Problem p, double[:, ::1] rotations, const double[:, ::1] translations, const double[:, ::1] offsets, const double[:, ::1] rests, const double[:, ::1] target, const double[:, ::1] omegas)
@cython.locals(after=cython.Py_ssize_t)
cdef Vector link_of(Problem p, Py_ssize_t i) noexcept nogil
@cython.locals(after=cython.Py_ssize_t, step=cython.int, side=cython.int)
cdef Quaternion best_turn(Problem p, Stand stand, Py_ssize_t i, const double[::1] beyond, const double[:, ::1] omegas) noexcept nogil
cdef double triangle_angle(Problem p, Stand stand, Py_ssize_t i, double b) noexcept nogil
cdef Vector triangle_axis(Problem p, Stand stand, Py_ssize_t i, Vector along, Vector towards) noexcept nogil
@cython.locals(fits=cython.bint, at=cython.Py_ssize_t)
cdef Placed placed_link(Problem p, Stand stand, Py_ssize_t i, double angle, const double[:, ::1] omegas) noexcept nogil
@cython.locals(after=cython.Py_ssize_t)
cdef Stand stand_above(Problem p, Stand stand, Py_ssize_t i, Quaternion rotation) noexcept nogil
