// Clusters and stored topologies.
import { amend, link, useAsked, type Route } from "../hooks";
import { Networks } from "../messages/canopy/v1/networks_pb";
import { Empty, Facts, Pages, Section, Shown, Table } from "../parts";
import { call } from "../rpc";
import { ago, bytes, clock, count, names, short } from "../words";
import { NetworkOf } from "./network";

export function ClustersPage({ route }: { route: Route }) {
  const token = route.query.get("page") ?? "";
  const clusters = useAsked("clusters", 10, (signal) => call(Networks.method.listClusters, { pageSize: 100 }, { signal }));
  const topologies = useAsked(`topologies ${token}`, 10, (signal) => call(Networks.method.listTopologies, { pageSize: 50, pageToken: token, orderBy: "created desc" }, { signal }));
  return (
    <>
      <Section title="Clusters">
        <Shown of={clusters}>
          {(reply) => reply.clusters.length === 0 ? <Empty>No cluster is stored. <code>canopy network cluster put</code> stores one under a name.</Empty> : (
            <Table label="Clusters" rows={reply.clusters} keyOf={(cluster) => cluster.name}
              columns={[
                { head: "Cluster", cell: (cluster) => <a href={`#/${cluster.name}`}>{cluster.name}</a> },
                { head: "Machines", cell: (cluster) => count(cluster.nodes), number: true },
                { head: "Ranks", cell: (cluster) => count(cluster.ranks), number: true },
                { head: "Switches", cell: (cluster) => count(cluster.switches), number: true },
                { head: "Size", cell: (cluster) => bytes(cluster.sizeBytes), number: true },
                { head: "Changed", cell: (cluster) => <span title={clock(cluster.updateTime)}>{ago(cluster.updateTime)}</span> },
              ]} />
          )}
        </Shown>
      </Section>
      <Section title="Topologies">
        <Shown of={topologies}>
          {(reply) => reply.topologies.length === 0 ? <Empty>No topology is stored. Leases and reports of faults store theirs, and so does <code>canopy network put</code>.</Empty> : (
            <>
              <Table label="Topologies" rows={reply.topologies} keyOf={(topology) => topology.name}
                columns={[
                  { head: "Topology", cell: (topology) => <a href={`#/${topology.name}`}><code>{short(topology.name)}</code></a> },
                  { head: "Name", cell: (topology) => topology.displayName || "–" },
                  { head: "Ranks", cell: (topology) => count(topology.summary?.ranks ?? 0), number: true },
                  { head: "Nodes", cell: (topology) => count(topology.summary?.nodes ?? 0), number: true },
                  { head: "Links", cell: (topology) => count(topology.summary?.links ?? 0), number: true },
                  { head: "Stored", cell: (topology) => <span title={clock(topology.createTime)}>{ago(topology.createTime)}</span> },
                ]} />
              <Pages total={reply.totalSize} shown={reply.topologies.length} word="topology" next={reply.nextPageToken} isFirst={!token} onFirst={() => amend(route, { page: "" })} onNext={() => amend(route, { page: reply.nextPageToken })} />
            </>
          )}
        </Shown>
      </Section>
    </>
  );
}

export function ClusterPage({ name }: { name: string }) {
  const asked = useAsked(name, 0, (signal) => call(Networks.method.getCluster, { name }, { signal }));
  return (
    <Shown of={asked}>
      {({ cluster, nodes }) => (
        <>
          <p class="subject">{name}</p>
          <Facts of={[["Machines", `${count(cluster?.nodes ?? 0)}: ${names(nodes, 8)}`], ["Ranks", count(cluster?.ranks ?? 0)], ["Switches", count(cluster?.switches ?? 0)], ["Changed", ago(cluster?.updateTime)]]} />
          <NetworkOf source={{ cluster: name }} />
        </>
      )}
    </Shown>
  );
}

export function TopologyPage({ name }: { name: string }) {
  const asked = useAsked(name, 0, (signal) => call(Networks.method.getTopology, { name }, { signal }));
  return (
    <Shown of={asked}>
      {({ topology }) => (
        <>
          <p class="subject">{topology?.displayName} <code>{name}</code></p>
          <Facts of={[["Ranks", count(topology?.summary?.ranks ?? 0)], ["Nodes", count(topology?.summary?.nodes ?? 0)], ["Links", count(topology?.summary?.links ?? 0)], ["Plans", <a href={link("plans", { filter: `topology=${topology?.summary?.hash}` })}>plans for this network</a>]]} />
          <NetworkOf source={{ topology: name }} />
        </>
      )}
    </Shown>
  );
}
