-- Jobs of all servers: who waits for which plan, who makes it, and how far that is.

-- Servers that are there. Each says so every few seconds; one that is silent for long is gone, and what it was making is made
-- by others.
create table servers (
    server bigint generated always as identity primary key,
    name text not null,
    -- Servers of one class make equal plans of equal requests; jobs are for servers of their class alone.
    class text not null,
    until timestamptz not null
);

create table jobs (
    job bigint generated always as identity primary key,
    -- For which it was first wanted.
    operation bigint not null,
    -- Of the plan.
    key bytea not null,
    -- Of the schedule that is searched for: one search of each at a time.
    search bytea,
    class text not null,
    -- 0 waits, 1 runs, 2 has a plan, 3 has failed, 4 was cancelled
    state smallint not null default 0,
    priority smallint not null,
    memory bigint not null,
    -- Whose turn it is: tenants take turns by their weights.
    tenant text not null,
    weight bigint not null check (weight > 0),
    is_detached boolean not null,
    -- Whether it is made beside the searches of others.
    is_beside boolean not null,
    -- The request, until the job has ended.
    entry bytea not null,
    -- Which part of a question about the request is to be answered; null: its plan is to be made.
    slice bytea,
    -- Who makes the plan, and by which right: one that was given away since then is worth nothing.
    owner bigint,
    fence bigint,
    starts integer not null default 0,
    is_unwanted boolean not null default false,
    -- When the last of the servers where somebody waited for it went silent: callers may come back elsewhere.
    orphaned timestamptz,
    -- Of a job that has ended: how, for those who wait.
    outcome bytea,
    -- Whether it fails whenever it is tried.
    is_lasting boolean not null default false,
    created timestamptz not null default now(),
    ended timestamptz
) with (fillfactor = 70);
create unique index jobs_live on jobs (key, class) where state < 2;
create index jobs_waiting on jobs (class, priority desc, job) where state = 0;
create index jobs_running on jobs (owner) where state = 1;
create unique index jobs_searched on jobs (search) where state = 1;
create index jobs_ended on jobs (ended) where state >= 2;
create index jobs_orphaned on jobs (orphaned) where orphaned is not null;
create index jobs_refused on jobs (key, class, ended) where state = 3 and is_lasting;

create sequence fences;

-- Counts how often an operator had refusals forgotten.
create sequence forgettings;

-- What callers wait for by name, at whichever server they ask.
create table operations (
    operation bigint primary key,
    job bigint not null references jobs on delete cascade,
    -- What is to be known of it beside its job.
    facts bytea not null,
    is_cancelled boolean not null default false
);
create index operations_by_job on operations (job);

-- Servers number their operations in blocks.
create sequence operation_blocks minvalue 0;

-- What tenants had of planning time, in microseconds of a tenant of weight 1; and of him whose turn it was last.
create table turns (tenant text primary key, had bigint not null);
create table turn (had bigint not null);
insert into turn values (0);

-- Servers whose callers wait for a job.
create table waiters (
    job bigint not null references jobs on delete cascade,
    server bigint not null references servers on delete cascade,
    primary key (job, server)
);
create index waiters_by_server on waiters (server);

-- How far running jobs are; worth nothing after a crash.
create unlogged table progress (
    job bigint primary key,
    report bytea not null
);

-- What is used of quotas over time: when all of it will have come back.
create table charges (
    account text not null,
    quota text not null,
    back_at timestamptz not null,
    primary key (account, quota)
);

-- What servers hold of quotas at once.
create table holdings (
    server bigint not null references servers on delete cascade,
    account text not null,
    quota text not null,
    held bigint not null,
    primary key (account, quota, server)
);
create index holdings_by_server on holdings (server);

-- Has a server say what it uses of quotas, in microseconds in which it comes back, and what it holds; returns what all servers
-- use, and what others hold.
create function share_quotas(p_server bigint, p_account text[], p_quota text[], p_more bigint[], p_held bigint[])
returns table (o_account text, o_quota text, o_back_us bigint, o_held bigint)
language plpgsql set search_path = canopy as $$
begin
    -- In one order, so that no two servers wait for each other.
    insert into charges (account, quota, back_at)
        select a.account, a.quota, now() + a.more * interval '1 microsecond'
            from unnest(p_account, p_quota, p_more) a(account, quota, more) where a.more > 0 order by 1, 2
        on conflict (account, quota)
            do update set back_at = greatest(charges.back_at, now()) + (excluded.back_at - now());
    delete from holdings where server = p_server;
    insert into holdings (server, account, quota, held)
        select s.server, a.account, a.quota, a.held
            from unnest(p_account, p_quota, p_held) a(account, quota, held) join servers s on s.server = p_server
            where a.held > 0;
    return query
        select a.account, a.quota,
            coalesce((extract(epoch from greatest(c.back_at - now(), interval '0')) * 1000000)::bigint, 0),
            coalesce((select sum(h.held) from holdings h
                where h.account = a.account and h.quota = a.quota and h.server <> p_server), 0)::bigint
        from unnest(p_account, p_quota) a(account, quota)
            left join charges c on c.account = a.account and c.quota = a.quota;
end
$$;

-- Has an operation of a server wait for the plan of this key: for the job that makes it, or a new one; or for none, if one has
-- lately failed that would fail again: then this is its outcome. Says whether the job is for this operation first.
create function submit_job(
    p_server bigint, p_operation bigint, p_facts bytea, p_key bytea, p_search bytea, p_class text, p_priority smallint,
    p_memory bigint, p_tenant text, p_weight bigint, p_is_detached boolean, p_is_beside boolean, p_entry bytea,
    p_slice bytea, p_refused interval, out o_job bigint, out o_is_first boolean, out o_refusal bytea
) language plpgsql set search_path = canopy as $$
declare
    v_first bigint;
    v_is_new boolean := false;
begin
    select job, outcome into o_job, o_refusal from jobs
        where key = p_key and class = p_class and state = 3 and is_lasting and ended > now() - p_refused
        order by ended desc limit 1;
    if not found then
        loop
            insert into jobs (operation, key, search, class, priority, memory, tenant, weight, is_detached, is_beside, entry,
                    slice)
                values (p_operation, p_key, p_search, p_class, p_priority, p_memory, p_tenant, p_weight, p_is_detached,
                    p_is_beside, p_entry, p_slice)
                on conflict (key, class) where state < 2 do nothing;
            v_is_new := v_is_new or found;
            -- Locked, so that it does not end, nor the last of those who wait leave, before this one is entered.
            update jobs set priority = greatest(priority, p_priority), is_detached = is_detached or p_is_detached,
                    is_beside = is_beside and p_is_beside, is_unwanted = false, orphaned = null
                where key = p_key and class = p_class and state < 2 returning job, operation into o_job, v_first;
            exit when found;
        end loop;
        -- One that was taken for gone enters everything again when it has heard of that.
        insert into waiters (job, server) select o_job, server from servers where server = p_server
            on conflict do nothing;
    end if;
    -- Slices have no name: who asked for them waits for all.
    if p_slice is null then
        insert into operations (operation, job, facts) values (p_operation, o_job, p_facts)
            on conflict (operation) do update set job = excluded.job;
    end if;
    -- By itself, if it was asked for again because a connection broke.
    o_is_first := coalesce(v_first = p_operation, false);
    if v_is_new then
        perform pg_notify('canopy_jobs', o_job::text);
    end if;
end
$$;

-- Writes an operation down that has ended before it had a job.
create function end_operation(
    p_operation bigint, p_facts bytea, p_key bytea, p_class text, p_state smallint, p_outcome bytea
) returns void language plpgsql set search_path = canopy as $$
declare
    v_job bigint;
begin
    if exists (select from operations where operation = p_operation) then
        return;
    end if;
    insert into jobs (operation, key, class, state, priority, memory, tenant, weight, is_detached, is_beside, entry, outcome,
            ended)
        values (p_operation, p_key, p_class, p_state, 0, 0, '', 1, false, false, '', p_outcome, now())
        returning job into v_job;
    insert into operations (operation, job, facts) values (p_operation, v_job, p_facts);
end
$$;

-- Gives a server the job whose turn it is: of those that take no more memory than it has for all, the first, if it has so much
-- of it left, since others would keep a large one waiting for ever. Repairs (priority 3) come first, then tenants take turns:
-- first comes who had least (start-time fair queueing: Goyal, Vin and Cheng, 1996). Those that are made beside searches, and
-- repairs, are for workers of their own. A schedule that is searched for is not searched for twice.
create function claim_job(
    p_server bigint, p_class text, p_memory bigint, p_memory_max bigint, p_is_beside boolean, p_own_only boolean,
    p_expected bigint
) returns setof jobs language plpgsql set search_path = canopy as $$
declare
    v_first record;
begin
    -- One that was taken for gone gets none: nobody would notice that it is silent.
    perform from servers where server = p_server for key share;
    if not found then
        return;
    end if;
    for v_attempt in 1 .. 8 loop
        select j.job, j.memory, j.tenant, j.weight, greatest(coalesce(t.had, 0), turn.had) as had into v_first
            from jobs j cross join turn left join turns t on t.tenant = j.tenant
            where j.state = 0 and j.class = p_class and j.memory <= p_memory_max
                and case when p_is_beside then j.is_beside or j.priority >= 3 else not j.is_beside end
                and not exists (select from jobs r where r.state = 1 and r.search = j.search)
                and (not p_own_only or exists (select from waiters w where w.job = j.job and w.server = p_server))
            order by j.is_beside desc, j.priority >= 3 desc, greatest(coalesce(t.had, 0), turn.had), j.priority desc, j.job
            limit 1 for update of j skip locked;
        if not found or v_first.memory > p_memory then
            return;
        end if;
        begin
            return query update jobs
                set state = 1, owner = p_server, fence = nextval('fences'), starts = starts + 1
                where job = v_first.job returning *;
            update turn set had = greatest(had, v_first.had);
            insert into turns (tenant, had) values (v_first.tenant, v_first.had + p_expected / v_first.weight)
                on conflict (tenant) do update set had = greatest(turns.had, v_first.had) + p_expected / v_first.weight;
            return;
        exception when unique_violation then
            -- Another server has begun to search for the same since the look.
        end;
    end loop;
end
$$;

-- Ends a job, if this is still the right by which it runs: with what it makes of records, all or none. Otherwise the error is
-- CN003, and nothing changes. The time it took is more than was expected by so much.
create function end_job(
    p_job bigint, p_fence bigint, p_state smallint, p_outcome bytea, p_is_lasting boolean, p_more bigint,
    p_attempt bytea, p_kind smallint[], p_space smallint[], p_key bytea[], p_expected bigint[],
    p_size bigint[], p_digest bytea[], p_small bytea[], p_body bigint[], p_summary bytea[]
) returns bigint language plpgsql set search_path = canopy as $$
declare
    v_version bigint := 0;
    v_job record;
begin
    update jobs set state = p_state, outcome = p_outcome, is_lasting = p_is_lasting, ended = now(), owner = null, entry = ''
        where job = p_job and fence = p_fence and state = 1 returning tenant, weight into v_job;
    if not found then
        raise exception 'job % is not run by the right %', p_job, p_fence using errcode = 'CN003';
    end if;
    delete from progress where job = p_job;
    update turns set had = greatest(0, had + p_more / v_job.weight) where tenant = v_job.tenant;
    if cardinality(p_key) > 0 then
        v_version := change_records(p_attempt, p_kind, p_space, p_key, p_expected, p_size, p_digest, p_small, p_body,
            p_summary);
    end if;
    perform pg_notify('canopy_jobs', p_job::text);
    return v_version;
end
$$;

-- A server waits for a job no more. One that nobody waits for any more is cancelled, unless it goes on alone and may do so still.
create function leave_job(p_server bigint, p_job bigint, p_may_go_on boolean) returns void
language plpgsql set search_path = canopy as $$
declare
    v_job record;
begin
    -- Locked first, and looked at in a later statement: another server may be entering.
    select * into v_job from jobs where job = p_job for update;
    delete from waiters where job = p_job and server = p_server;
    if v_job.job is null or v_job.state >= 2 or (v_job.is_detached and p_may_go_on)
        or exists (select from waiters where job = p_job) then
        return;
    end if;
    if v_job.state = 0 then
        update jobs set state = 4, ended = now(), entry = '' where job = p_job;
    else
        update jobs set is_unwanted = true where job = p_job;
    end if;
    perform pg_notify('canopy_jobs', p_job::text);
end
$$;

-- Cancels a job for all who wait for it.
create function cancel_job(p_job bigint, p_outcome bytea) returns boolean
language plpgsql set search_path = canopy as $$
begin
    update jobs set state = 4, ended = now(), owner = null, outcome = p_outcome, entry = ''
        where job = p_job and state < 2;
    if found then
        delete from progress where job = p_job;
        perform pg_notify('canopy_jobs', p_job::text);
        return true;
    end if;
    return false;
end
$$;

-- Cancels an operation: its job, for all who wait for it, if it is for this one first; else its server has it end alone. False:
-- it has ended, or there is none.
create function cancel_operation(p_operation bigint, p_outcome bytea) returns boolean
language plpgsql set search_path = canopy as $$
declare
    v_job record;
begin
    select j.job, j.operation, j.state into v_job from operations o join jobs j on j.job = o.job where o.operation = p_operation;
    if v_job.job is null or v_job.state >= 2 then
        return false;
    end if;
    if v_job.operation = p_operation then
        return cancel_job(v_job.job, p_outcome);
    end if;
    update operations set is_cancelled = true where operation = p_operation;
    perform pg_notify('canopy_jobs', v_job.job::text);
    return true;
end
$$;

-- Removes servers that are silent, and has what they were making made by others. A job that was begun so often and never ended
-- is taken for what ends servers: it fails with this outcome. Returns how many jobs were given to others.
create function bury_servers(p_class text, p_starts_max integer, p_outcome bytea) returns bigint
language plpgsql set search_path = canopy as $$
declare
    v_dead bigint[];
    v_count bigint;
    v_failed bigint;
begin
    select array_agg(server) into v_dead from (
        select server from servers where until < now() for update skip locked
    ) silent;
    if v_dead is null then
        return 0;
    end if;
    update jobs set state = 3, ended = now(), owner = null, outcome = p_outcome, entry = ''
        where state = 1 and owner = any(v_dead) and starts >= p_starts_max;
    get diagnostics v_failed = row_count;
    update jobs set state = 0, owner = null, fence = null where state = 1 and owner = any(v_dead);
    get diagnostics v_count = row_count;
    -- With those who waited at them. Jobs that nobody waits for now wait a while for callers to come back.
    delete from servers where server = any(v_dead);
    update jobs j set orphaned = now()
        where state < 2 and not is_detached and orphaned is null
            and not exists (select from waiters w where w.job = j.job);
    update jobs j set class = p_class
        where state = 0 and class <> p_class and not exists (select from servers s where s.class = j.class)
            and not exists (select from jobs o where o.key = j.key and o.class = p_class and o.state < 2);
    if v_count + v_failed > 0 then
        perform pg_notify('canopy_jobs', 'buried');
    end if;
    return v_count;
end
$$;

-- Cancels jobs whose callers have not come back for so long, and forgets those that ended long ago. Returns how many were
-- cancelled.
create function tidy_jobs(p_orphaned interval, p_ended interval, p_ended_max bigint) returns bigint
language plpgsql set search_path = canopy as $$
declare
    v_count bigint;
begin
    with lost as (
        select job, state from jobs where orphaned < now() - p_orphaned and state < 2 for update skip locked
    )
    update jobs j set state = case when lost.state = 0 then 4 else j.state end,
            ended = case when lost.state = 0 then now() end, is_unwanted = true,
            entry = case when lost.state = 0 then '' else j.entry end
        from lost where j.job = lost.job;
    get diagnostics v_count = row_count;
    if v_count > 0 then
        perform pg_notify('canopy_jobs', 'tidied');
    end if;
    delete from jobs where job in (
        -- Who asked for a slice has heard of it by then; its answer is of use to nobody else.
        select job from jobs where state >= 2 and ended < now() - case when slice is null then p_ended else p_orphaned end
        union (select job from jobs where state >= 2 and slice is null order by ended desc offset p_ended_max)
        limit 1000
    );
    delete from charges where back_at < now();
    -- Who had no more than he whose turn it was is as one who had nothing.
    delete from turns where had <= (select had from turn);
    return v_count;
end
$$;
