// The console of canopyd: what it computes and keeps, for operators.
import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Actions, keepActions, readActions } from "./actions";
import { useAsked, useRoute, type Route } from "./hooks";
import { Server } from "./messages/canopy/v1/server_pb";
import { call, caller, UNAUTHENTICATED } from "./rpc";
import { AuditPage } from "./pages/audit";
import { ClusterPage, ClustersPage, TopologyPage } from "./pages/clusters";
import { ComparePage } from "./pages/compare";
import { FaultsPage } from "./pages/faults";
import { JobPage, JobsPage } from "./pages/jobs";
import { LeasePage, LeasesPage } from "./pages/leases";
import { OverviewPage } from "./pages/overview";
import { PlanPage } from "./pages/plan";
import { PlansPage } from "./pages/plans";
import { SettingsPage } from "./pages/settings";
import { Empty, Problem } from "./parts";
import "./console.css";

const PAGES: readonly (readonly [string, string])[] = [
  ["", "Overview"],
  ["plans", "Plans"],
  ["jobs", "Jobs"],
  ["clusters", "Clusters"],
  ["faults", "Faults"],
  ["leases", "Leases"],
  ["settings", "Settings"],
  ["audit", "Audit"],
];

function Page({ route }: { route: Route }) {
  const [page = "", name] = route.path;
  switch (page) {
    case "":
      return <OverviewPage />;
    case "plans":
      return name ? <PlanPage key={name} name={`plans/${name}`} route={route} /> : <PlansPage route={route} />;
    case "compare":
      return <ComparePage route={route} />;
    case "jobs":
      return name ? <JobPage key={name} name={`operations/${name}`} /> : <JobsPage route={route} />;
    case "clusters":
      return name ? <ClusterPage key={name} name={`clusters/${name}`} /> : <ClustersPage route={route} />;
    case "topologies":
      return <TopologyPage key={name} name={`topologies/${name}`} />;
    case "faults":
      return <FaultsPage route={route} />;
    case "leases":
      return name ? <LeasePage key={name} name={`leases/${name}`} /> : <LeasesPage route={route} />;
    case "settings":
      return <SettingsPage route={route} />;
    case "audit":
      return <AuditPage />;
    default:
      return <Empty>This page does not exist. <a href="#/">Go to the overview</a>.</Empty>;
  }
}

function Console() {
  const route = useRoute();
  const [actions, setActions] = useState(readActions);
  const [callerRound, setCallerRound] = useState(0);
  const quota = useAsked(`caller ${callerRound}`, 30, (signal) => call(Server.method.getQuota, {}, { signal }));
  const main = useRef<HTMLElement>(null);
  const current = route.path[0] ?? "";
  const singular = { plans: "Plan", jobs: "Job", clusters: "Cluster", topologies: "Topology", leases: "Lease" }[current];
  const title = (route.path[1] && singular) || (PAGES.find(([path]) => path === current)?.[1] ?? (current === "compare" ? "Compare plans" : "Page"));
  useEffect(() => {
    document.title = `${title} · canopy console`;
  }, [title]);
  const isStranger = quota.error?.code === UNAUTHENTICATED;
  const enter = () => setCallerRound((round) => round + 1);
  return (
    <Actions.Provider value={actions}>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); main.current?.focus(); }}>Skip to the content</a>
      <header class="top">
        <a class="brand" href="#/"><img src="./icon.svg" alt="" width="28" height="28" /> canopy</a>
        <nav aria-label="Pages">
          {PAGES.map(([path, text]) => <a href={`#/${path}`} aria-current={path === current ? "page" : undefined}>{text}</a>)}
        </nav>
        <div class="caller">
          {quota.data && <span title="Who calls, for which tenant">{quota.data.identity}{quota.data.tenant && ` · ${quota.data.tenant}`}</span>}
          {caller.token && <button type="button" onClick={() => { caller.set("", ""); enter(); }}>Sign out</button>}
          <label class="switch">
            <input type="checkbox" checked={actions} onChange={(event) => { setActions(event.currentTarget.checked); keepActions(event.currentTarget.checked); }} />
            Actions
          </label>
        </div>
      </header>
      <main id="main" tabIndex={-1} ref={main} key={callerRound}>
        <h1>{title}</h1>
        {isStranger ? <SignIn error={caller.token ? quota.error : undefined} enter={enter} /> : <Page route={route} />}
      </main>
    </Actions.Provider>
  );
}

/** Asks for a token. It stays in this tab. */
function SignIn({ error, enter }: { error: ReturnType<typeof useAsked>["error"]; enter: () => void }) {
  const [token, setToken] = useState("");
  const [tenant, setTenant] = useState(caller.tenant);
  return (
    <form class="sign-in" onSubmit={(event) => { event.preventDefault(); caller.set(token.trim(), tenant.trim()); enter(); }}>
      <p>This server asks who you are. Enter a token; <code>canopy server tokens create</code> on its host makes one. The token stays in this tab until you close it.</p>
      {error && <Problem error={error} title="The server does not accept this token" />}
      <label class="field wide"><span>Token</span><input type="password" autocomplete="off" required value={token} onInput={(event) => setToken(event.currentTarget.value)} /></label>
      <label class="field"><span>Tenant, if you have several</span><input type="text" autocomplete="off" value={tenant} onInput={(event) => setTenant(event.currentTarget.value)} /></label>
      <button type="submit" class="primary">Sign in</button>
    </form>
  );
}

render(<Console />, document.getElementById("console")!);
