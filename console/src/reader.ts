// Reads plan files and networks apart from the page, so that it stays responsive.
import type { Ends, Hops, Model, Question, Reply } from "./model";
import { network } from "./network";
import type { Network, PlanFile } from "./planfile";
import { flow, forest, hopsOf, inSteps, Traffic } from "./traffic";
import { usesOf } from "./uses";

/** The model of a plan file or of a network, and the file. */
export function read(text: string): { model: Model; traffic: Traffic | undefined; file: PlanFile | undefined } {
  const parsed = JSON.parse(text) as PlanFile | Network;
  const plan = "schedule" in parsed ? parsed : undefined;
  const described = plan ? plan.topology : (parsed as Network);
  const { nodes, links } = network(described);
  const model: Model = { name: described.name ?? "", cluster: described.cluster ?? "", nodes, links, limit: [], shape: "", trees: [], steps: [], chunks: plan?.chunks_per_share ?? 0 };
  if (!plan) return { model, traffic: undefined, file: undefined };
  const ranks = nodes.filter((node) => node.rank !== null).length;
  const traffic = new Traffic(links, ranks, plan.schedule.routes);
  const { shape } = plan.schedule;
  if (shape === "forest") model.trees = forest(plan, traffic);
  else if (shape === "steps") inSteps(plan, traffic);
  else flow(plan, traffic);
  const times = links.map((link, at) => traffic.onLink[at]! / link.bandwidth);
  const most = times.reduce((a, b) => Math.max(a, b), 0) || 1;
  links.forEach((link, at) => (link.load = times[at]! / most));
  model.limit = plan.certificate?.nodes ?? [];
  model.shape = shape;
  model.steps = traffic.steps;
  return { model, traffic, file: plan };
}

/** The hops of a tree, counted over all phases, and which of them cross a link. */
export function treeOf(file: PlanFile, traffic: Traffic, index: number, link: Ends | undefined): Hops {
  const trees = (file.schedule.phases ?? []).flatMap((phase) => phase.trees);
  const isChosen = (one: number) => traffic.links[one]!.from === link?.from && traffic.links[one]!.to === link.to;
  const crosses = (route: number) => traffic.routes[route]!.some(isChosen);
  return hopsOf(trees[index]!, traffic).map(([from, to, division]) => [
    from, to, link !== undefined && (typeof division === "number" ? crosses(division) : division.some(([route]) => crosses(route))),
  ]);
}

let kept: ReturnType<typeof read> | undefined;

function answer(question: Question): Reply {
  try {
    if (question.ask === "tree") return { hops: treeOf(kept!.file!, kept!.traffic!, question.index, question.link) };
    if (question.ask === "uses") return { uses: usesOf(kept!.file!, kept!.traffic!, question.link.from, question.link.to) };
    kept = read(new TextDecoder().decode(question.text));
    return { model: kept.model };
  } catch (problem) {
    return { problem: problem instanceof Error ? problem.message : String(problem) };
  }
}

self.onmessage = (event: MessageEvent<Question>) => self.postMessage(answer(event.data));
