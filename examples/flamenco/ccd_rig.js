// SPDX-License-Identifier: GPL-3.0-or-later
// A job type of Flamenco 3 that runs the tasks of a job bundle, see docs/guide/farm.md.
const JOB_TYPE = {
    label: "CCD Rig",
    settings: [
        { key: "bundle", type: "string", subtype: "dir_path", required: true, description: "Folder of the job bundle" },
        {
            key: "shots", type: "string", required: false,
            description: "Paths of the shots and their numbers of parts: /shots/a.blend 1, /shots/long.blend 4",
        },
        {
            key: "clips", type: "string", required: false,
            description: "Instead of shots, paths of the clips: /clips/walk.bvh, /clips/run.bvh",
        },
        {
            key: "target", type: "string", subtype: "file_path", required: false,
            description: "The .blend file that the clips are put onto",
        },
    ],
};

function ccdRig(name, bundle, words) {
    const task = author.Task(name, "blender");
    const common = ["--settings=" + bundle + "/settings.json", "--output=" + bundle + "/baked"];
    task.addCommand(author.Command("exec", {
        exe: "{blender}",
        args: ["-b", "--disable-autoexec", "--offline-mode", "--command", "ccd_rig"]
            .concat(words.slice(0, 1), common, words.slice(1)),
    }));
    return task;
}

function compileJob(job) {
    const bundle = job.settings.bundle;
    const table = ccdRig("table", bundle, ["farm-table"]);
    for (const clip of (job.settings.clips || "").split(",").filter((words) => words.trim())) {
        const carried = ccdRig("retarget " + clip.trim(), bundle, ["farm-retarget", clip.trim(), job.settings.target]);
        table.addDependency(carried);
        job.addTask(carried);
    }
    for (const line of (job.settings.shots || "").split(",").filter((words) => words.trim())) {
        const words = line.trim().split(" ");
        const parts = parseInt(words.pop());
        const shot = words.join(" ");
        const join = parts > 1 ? ccdRig("join " + shot, bundle, ["farm-join", shot]) : null;
        for (let part = 1; part <= parts; part++) {
            const bake = ccdRig("bake " + shot + " " + part, bundle, ["farm-bake", "--part=" + part, shot]);
            (join || table).addDependency(bake);
            job.addTask(bake);
        }
        if (join) {
            table.addDependency(join);
            job.addTask(join);
        }
    }
    job.addTask(table);
}
