// Who calls, what they may use, and where the audit log is.
import { useAsked } from "../hooks";
import { type QuotaUse, Server } from "../messages/canopy/v1/server_pb";
import { Bar, Empty, Facts, Section, Shown, Table } from "../parts";
import { call } from "../rpc";
import { count } from "../words";

export function AuditPage() {
  const asked = useAsked("quota", 3, (signal) => call(Server.method.getQuota, {}, { signal }));
  return (
    <>
      <Section title="Audit log">
        <p>canopyd writes one line of JSON for every call that changes something, and for every call that it refuses because of the caller. The log is a folder on the server's host, so that callers can neither read nor change it: <code>audit</code> in the data directory, unless the setting <code>audit</code> names another. With <code>--dev</code> it is off unless the setting names a folder.</p>
        <p>On the host, <code>canopy server audit verify DIR</code> checks that no line was changed or removed. Actions of this console are in the log like those of any other client.</p>
      </Section>
      <Section title="You">
        <Shown of={asked}>
          {(quota) => (
            <>
              <Facts of={[["Name", quota.identity], ["Tenant", quota.tenant || "none: what is shared"], ["Weight", count(quota.weight)]]} />
              <Uses label="Quotas of your tenant" of={quota.ofTenant} />
              <Uses label="Quotas of your own" of={quota.ofIdentity} />
            </>
          )}
        </Shown>
      </Section>
    </>
  );
}

function Uses({ label, of }: { label: string; of: readonly QuotaUse[] }) {
  if (of.length === 0) return <Empty>{label}: no limits.</Empty>;
  return <Table label={label} rows={of} keyOf={(use) => use.quota} columns={[{ head: label, cell: (use) => use.quota.replace(/_/g, " ") }, { head: "Use", cell: (use) => <Bar value={Number(use.used) / Math.max(1, Number(use.limit))} label={`${count(use.used)} of ${count(use.limit)}`} /> }]} />;
}
