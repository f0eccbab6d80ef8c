// Solves the chains and targets of a JSON file with three.js's CCDIKSolver; prints what it found as JSON.
//
//     node ccd.mjs NODE_MODULES CASES.json
//
// CASES: [{joints, kind: "free" | "boxes", lower, upper (radians per axis, boxes), tolerance, cap,
//          targets: [[x, y, z], ...]}, ...]
// Bones of length 1 along +Y, all started straight. The solver runs one iteration at a time, so that it can be stopped
// where the effector is near enough, as its own loop has no tolerance. All targets are solved twice; the second time,
// compiled, is the one that counts.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { resolve } from "node:path";

const [modules, file] = process.argv.slice(2);
const three = (path) => pathToFileURL(resolve(modules, "three", path)).href;
const { Bone, BufferGeometry, Euler, MeshBasicMaterial, Quaternion, Skeleton, SkinnedMesh, Vector3 } = await import(
  three("build/three.module.js")
);
const { CCDIKSolver } = await import(three("examples/jsm/animation/CCDIKSolver.js"));

function rig({ joints, kind, lower, upper }) {
  const bones = [];
  for (let i = 0; i <= joints; i++) {
    const bone = new Bone();
    bone.position.set(0, i === 0 ? 0 : 1, 0);
    if (i > 0) bones[i - 1].add(bone);
    bones.push(bone);
  }
  const target = new Bone();
  bones.push(target);
  const links = [];
  for (let i = joints - 1; i >= 0; i--) {
    const link = { index: i };
    if (kind === "boxes") {
      link.rotationMin = new Vector3(...lower);
      link.rotationMax = new Vector3(...upper);
    }
    links.push(link);
  }
  const mesh = new SkinnedMesh(new BufferGeometry(), new MeshBasicMaterial());
  mesh.add(bones[0]);
  mesh.add(target);
  mesh.bind(new Skeleton(bones));
  const chain = { target: joints + 1, effector: joints, links, iteration: 1 };
  return { mesh, bones, target, chain, solver: new CCDIKSolver(mesh, [chain]) };
}

const effector = new Vector3();
const spare = new Quaternion();
const angles = new Euler();

function solve({ mesh, bones, target, chain, solver }, { joints, kind, lower, upper, tolerance, cap }, point) {
  for (let i = 0; i < joints; i++) bones[i].quaternion.identity();
  target.position.set(...point);
  mesh.updateMatrixWorld(true);
  const began = process.hrtime.bigint();
  let iterations = 0;
  let distance = effector.setFromMatrixPosition(bones[joints].matrixWorld).distanceTo(target.position);
  while (distance > tolerance && iterations < cap) {
    solver.updateOne(chain);
    iterations++;
    distance = effector.setFromMatrixPosition(bones[joints].matrixWorld).distanceTo(target.position);
  }
  const micros = Number(process.hrtime.bigint() - began) / 1000;
  // Measured again from the bones' own rotations, scaled to unit length as a host would.
  for (let i = 0; i < joints; i++) bones[i].quaternion.normalize();
  mesh.updateMatrixWorld(true);
  distance = effector.setFromMatrixPosition(bones[joints].matrixWorld).distanceTo(target.position);
  let over = 0;
  if (kind === "boxes") {
    for (let i = 0; i < joints; i++) {
      angles.setFromQuaternion(spare.copy(bones[i].quaternion));
      angles.toArray().slice(0, 3).forEach((angle, axis) => {
        over = Math.max(over, lower[axis] - angle, angle - upper[axis]);
      });
    }
  }
  return { iterations, micros, distance, over };
}

const found = JSON.parse(readFileSync(file, "utf8")).map((cases) => {
  const scene = rig(cases);
  for (const point of cases.targets) solve(scene, cases, point);
  return cases.targets.map((point) => solve(scene, cases, point));
});
console.log(JSON.stringify(found));
