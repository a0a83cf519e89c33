// Makes the job that runs an ended job again: all its tasks, or those that did not end well, as candor rerun does.

/** at is the index of the task at a position of an array: a list of {first, last, step}. */
function at(array, position) {
  if (!array?.length) return position;
  for (const { first, last, step } of array) {
    const n = Math.floor((last - first) / Math.max(1, step ?? 1)) + 1;
    if (position < n) return first + position * (step ?? 1);
    position -= n;
  }
  return -1;
}

/** ranges writes ascending indices as an array. */
function ranges(indices) {
  const out = [];
  for (const i of indices) {
    const r = out.at(-1);
    if (r && r.first === r.last) [r.last, r.step] = [i, i - r.first];
    else if (r && i === r.last + r.step) r.last = i;
    else out.push({ first: i, last: i, step: 1 });
  }
  return out;
}

/**
 * again returns the description of the job that runs an ended job again. done has, for each stage, the indices of the tasks that
 * ended well. If all tasks ended well, the whole job runs again.
 */
export function again(d, done) {
  const { hold: _h, after_jobs: _j, after_ok: _o, after_failed: _f, after_start: _s, after_any: _a, start_delay: _d, after_each: _e, rerun_of: _r, ...spec } = d.spec;
  if (d.done === d.tasks) return spec;
  const whole = (s) => s.done === s.tasks;
  let tasks = 0;
  spec.rerun_of = d.job;
  spec.stages = d.spec.stages.flatMap((stage, i) => {
    const status = d.stages[i];
    if (whole(status)) return [];
    let left = Array.from({ length: status.tasks }, (_, k) => k);
    if (!stage.gang) left = left.filter((k) => !done[i].has(k));
    tasks += left.length;
    const after = (stage.after ?? []).filter((name) => !d.stages.some((s) => s.name === name && whole(s)));
    const { tasks: _n, after: _w, ...rest } = stage;
    const next = after.length > 0 ? { ...rest, after } : rest;
    if (left.length === status.tasks) return [stage.tasks ? { ...next, tasks: stage.tasks } : next];
    const positions = left.map((k) => (stage.repeats ? at(stage.repeats.positions, k) : k));
    return [{ ...next, array: ranges(left.map((k) => at(stage.array, k))), repeats: { tasks: stage.repeats?.tasks ?? status.tasks, positions: ranges(positions) } }];
  });
  spec.budget = Math.max(Math.ceil((Math.round(1e6 * d.budget) * tasks) / d.tasks) / 1e6, d.spec.value ?? 0);
  return spec;
}
