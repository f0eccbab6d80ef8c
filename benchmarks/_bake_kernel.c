/* Quaternion CCD for one unlimited chain along +Z and one position, root to tip: what a joint step costs
 * where nothing stands between it and the processor. Doubles; quaternions (w, x, y, z). */

#include <math.h>

typedef struct { double x, y, z; } vec;
typedef struct { double w, x, y, z; } quat;

static vec sub(vec a, vec b) { return (vec){a.x - b.x, a.y - b.y, a.z - b.z}; }
static vec add(vec a, vec b) { return (vec){a.x + b.x, a.y + b.y, a.z + b.z}; }
static double dot(vec a, vec b) { return a.x * b.x + a.y * b.y + a.z * b.z; }

static vec cross(vec a, vec b) {
    return (vec){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

static quat mul(quat a, quat b) {
    return (quat){a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z, a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y,
                  a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x, a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w};
}

static quat unit(quat a) {
    double s = 1.0 / sqrt(a.w * a.w + a.x * a.x + a.y * a.y + a.z * a.z);
    return (quat){a.w * s, a.x * s, a.y * s, a.z * s};
}

static vec turn(quat q, vec v) { /* v + 2 w (u x v) + 2 u x (u x v) */
    vec u = {q.x, q.y, q.z}, c = cross(u, v);
    vec d = cross(u, c);
    return (vec){v.x + 2.0 * (q.w * c.x + d.x), v.y + 2.0 * (q.w * c.y + d.y), v.z + 2.0 * (q.w * c.z + d.z)};
}

/* Part of the shortest arc from a to b. */
static quat arc(vec a, vec b, double part) {
    vec axis = cross(a, b);
    double sine = sqrt(dot(axis, axis)), half = 0.5 * part * atan2(sine, dot(a, b));
    if (sine == 0.0) return (quat){1.0, 0.0, 0.0, 0.0};
    double s = sin(half) / sine;
    return (quat){cos(half), axis.x * s, axis.y * s, axis.z * s};
}

/* Follows `frames` targets (3 doubles each), every frame from the pose of the one before.
 *
 * rotations: `joints` quaternions relative to rest, identity at the start; changed in place.
 * worst: the largest distance that was left at the end of a frame.
 * Returns how many joint steps were taken. */
long follow(int joints, int frames, double bone, const double *targets, double part, double tolerance,
            int passes, quat *rotations, double *worst) {
    long steps = 0;
    *worst = 0.0;
    for (int f = 0; f < frames; f++) {
        vec target = {targets[3 * f], targets[3 * f + 1], targets[3 * f + 2]}, tip = {0.0, 0.0, 0.0};
        quat base = {1.0, 0.0, 0.0, 0.0};
        for (int j = 0; j < joints; j++) {
            base = mul(base, rotations[j]);
            tip = add(tip, turn(base, (vec){0.0, 0.0, bone}));
        }
        double off = sqrt(dot(sub(tip, target), sub(tip, target)));
        for (int pass = 0; pass < passes && off > tolerance; pass++) {
            vec head = {0.0, 0.0, 0.0}, effector = tip;
            base = (quat){1.0, 0.0, 0.0, 0.0};
            for (int j = 0; j < joints; j++) {
                vec a = sub(effector, head);
                quat step = arc(a, sub(target, head), part), frame = unit(mul(step, mul(base, rotations[j])));
                quat back = {base.w, -base.x, -base.y, -base.z};
                effector = add(head, turn(step, a));
                rotations[j] = unit(mul(back, frame));
                base = frame;
                head = add(head, turn(base, (vec){0.0, 0.0, bone}));
                steps++;
            }
            tip = head;
            off = sqrt(dot(sub(tip, target), sub(tip, target)));
        }
        if (off > *worst) *worst = off;
    }
    return steps;
}
