// Which nodes and links of a network known faults concern.
import { type KnownFault } from "./messages/canopy/v1/faults_pb";
import { type Fault } from "./messages/canopy/v1/topology_pb";
import { pairOf, type Broken, type Model } from "./model";

interface Concerned {
  nodes: number[];
  links: [number, number][];
}

/** Whether two names are of one machine: one of them may be without its domain. */
function isSameHost(a: string | null, b: string): boolean {
  if (a === null) return false;
  return a === b || (a.includes(".") !== b.includes(".") && a.split(".")[0] === b.split(".")[0]);
}

/** What a fault concerns, by its kind; nothing if the network lacks the element. */
function concerned({ nodes, links }: Model, target: Fault["target"] | undefined): Concerned {
  const all = (is: (node: Model["nodes"][number]) => boolean): number[] => nodes.flatMap((node, index) => (is(node) ? [index] : []));
  const byId = (id: string) => nodes.findIndex((node) => node.id === id);
  const isMachine = (name: string) => (node: Model["nodes"][number]) => isSameHost(node.host, name) || node.box === name;
  const device = (of: { node: string; host: string; index: number } | undefined): number[] => {
    if (!of) return [];
    // An index counts the ranks of a machine.
    return of.node ? all((node) => node.id === of.node) : all((node) => node.rank !== null && isMachine(of.host)(node)).slice(of.index, of.index + 1);
  };
  const between = (from: number, to: number): [number, number][] =>
    links.some((link) => (link.from === from && link.to === to) || (link.from === to && link.to === from)) ? [[from, to]] : [];
  switch (target?.case) {
    case "link":
      return { nodes: [], links: between(byId(target.value.from), byId(target.value.to)) };
    case "nic": {
      const own = device(target.value.device);
      const { port } = target.value;
      return { nodes: own, links: port ? own.flatMap((node) => between(node, byId(port))) : [] };
    }
    case "device":
      return { nodes: device(target.value), links: [] };
    case "host":
      return { nodes: all(isMachine(target.value)), links: [] };
    case "node":
    case "switchName":
      return { nodes: all((node) => node.id === target.value), links: [] };
    case "plane": {
      // Switches of a rail; a switch of this name is a plane of its own.
      const own = all((node) => node.rank === null && node.rail === target.value);
      return { nodes: own.length ? own : all((node) => node.rank === null && node.id === target.value), links: [] };
    }
    case "switchFeature":
      return { nodes: all((node) => node.id === target.value.switchName), links: [] };
    case undefined:
      return { nodes: [], links: [] };
  }
}

/** Nodes and links with faults, with the names of these, and the faults that concern neither. */
export function marked(model: Model, faults: readonly KnownFault[]): Broken {
  const nodes = new Map<number, string>();
  const links = new Map<string, string>();
  const elsewhere: string[] = [];
  const note = <K>(of: Map<K, string>, key: K, text: string) => of.set(key, of.has(key) ? `${of.get(key)}, ${text}` : text);
  for (const { fault, text } of faults) {
    const found = concerned(model, fault?.target);
    for (const node of found.nodes) note(nodes, node, text);
    for (const [from, to] of found.links) note(links, pairOf(from, to), text);
    if (found.nodes.length + found.links.length === 0) elsewhere.push(text);
  }
  return { nodes, links, elsewhere };
}

/** Whether a network has a machine of this name. */
export function hasMachine({ nodes }: Model, name: string): boolean {
  return nodes.some((node) => isSameHost(node.host, name) || node.box === name);
}
