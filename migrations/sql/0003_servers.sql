-- What people want to know of the servers that share a database.

alter table servers
    -- What it does: `all`, `api` or `worker`; empty for a server of the version before.
    add column role text not null default '',
    add column since timestamptz not null default now();
