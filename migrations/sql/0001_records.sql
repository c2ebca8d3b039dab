-- Records of all spaces under keys, each with the version at which it changed last, and the order of all changes.

-- What is true of the database as a whole.
create table settings (
    name text primary key,
    value text not null
);

-- The number of the last change. Whoever changes anything locks this row first, and has it locked until the change is
-- there for all: the order of the numbers is the order in which changes come to be, without gaps.
create table head (
    is_only boolean primary key default true check (is_only),
    version bigint not null,
    -- What is added to the time of day of the database for the time that the servers go by, in milliseconds: by how much that
    -- was set while they ran, so that it does not matter to them.
    clock_shift_ms bigint not null default 0
);
insert into head (version) values (0);

-- Records that are too large for a row are in pieces. They are written before the record that they belong to; a body that
-- no record has taken after an hour belongs to nobody any more.
create table bodies (
    body bigint generated always as identity primary key,
    created timestamptz not null default now(),
    is_taken boolean not null default false
);
create index bodies_not_taken on bodies (created) where not is_taken;

create table pieces (
    body bigint not null references bodies on delete cascade,
    number integer not null,
    bytes bytea not null,
    primary key (body, number)
);
-- They do not compress, and are read whole.
alter table pieces alter column bytes set storage external;

create table records (
    space smallint not null,
    key bytea not null,
    version bigint not null,
    -- None: there is a summary only. Both are of the whole record.
    size bigint,
    digest bytea,
    -- One of these has the record.
    small bytea,
    body bigint,
    summary bytea,
    primary key (space, key)
);

-- Damaged records, for a person to look at.
create table quarantine (
    space smallint not null,
    key bytea not null,
    moved timestamptz not null default now(),
    size bigint,
    digest bytea,
    small bytea,
    body bigint,
    primary key (space, key)
);

-- Which records changed with each number. Those of an hour are kept; whoever has not seen them by then compares all
-- records with what it has.
create table changes (
    version bigint not null,
    number integer not null,
    space smallint not null,
    key bytea not null,
    -- Names the attempt, for who does not know whether it succeeded.
    attempt bytea not null,
    changed timestamptz not null default now(),
    primary key (version, number)
);
create index changes_by_attempt on changes (attempt);
create index changes_by_time on changes (changed);

-- Changes records, all or none, and returns the number of the change. Of each record it is stated at which version it is
-- (0: it is not there; -1: that does not matter): where that is wrong, nothing changes, and the error is CN001.
--   kind 1: puts the record and its summary; 2: puts the summary alone; 3: removes both; 4: moves the record to quarantine
create function change_records(
    p_attempt bytea, p_kind smallint[], p_space smallint[], p_key bytea[], p_expected bigint[],
    p_size bigint[], p_digest bytea[], p_small bytea[], p_body bigint[], p_summary bytea[]
) returns bigint language plpgsql set search_path = canopy as $$
declare
    v_version bigint;
    v_old record;
begin
    update head set version = version + 1 returning version into v_version;
    for i in 1 .. cardinality(p_key) loop
        select r.version, r.size, r.digest, r.small, r.body into v_old
            from records r where r.space = p_space[i] and r.key = p_key[i];
        if p_expected[i] <> -1 and p_expected[i] <> coalesce(v_old.version, 0) then
            raise exception 'record % of space % is at version %, not %',
                encode(p_key[i], 'hex'), p_space[i], coalesce(v_old.version, 0), p_expected[i]
                using errcode = 'CN001';
        end if;
        if p_kind[i] = 1 then
            if p_body[i] is not null then
                update bodies set is_taken = true where body = p_body[i];
                if not found then
                    raise exception 'body % is gone', p_body[i] using errcode = 'CN002';
                end if;
            end if;
            insert into records (space, key, version, size, digest, small, body, summary)
                values (p_space[i], p_key[i], v_version, p_size[i], p_digest[i], p_small[i], p_body[i], p_summary[i])
                on conflict (space, key) do update set version = excluded.version, size = excluded.size,
                    digest = excluded.digest, small = excluded.small, body = excluded.body, summary = excluded.summary;
            delete from bodies where body = v_old.body;
        elsif p_kind[i] = 2 then
            insert into records (space, key, version, summary)
                values (p_space[i], p_key[i], v_version, p_summary[i])
                on conflict (space, key) do update set version = excluded.version, summary = excluded.summary;
        else
            if p_kind[i] = 4 and v_old.size is not null then
                delete from bodies b using quarantine q
                    where q.space = p_space[i] and q.key = p_key[i] and b.body = q.body;
                insert into quarantine (space, key, size, digest, small, body)
                    values (p_space[i], p_key[i], v_old.size, v_old.digest, v_old.small, v_old.body)
                    on conflict (space, key) do update set moved = now(), size = excluded.size,
                        digest = excluded.digest, small = excluded.small, body = excluded.body;
            else
                delete from bodies where body = v_old.body;
            end if;
            delete from records where space = p_space[i] and key = p_key[i];
        end if;
        insert into changes (version, number, space, key, attempt)
            values (v_version, i, p_space[i], p_key[i], p_attempt);
    end loop;
    perform pg_notify('canopy_changes', v_version::text);
    return v_version;
end
$$;
