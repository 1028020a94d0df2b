-- The ledger. Conventions of every table:
--   names are bytea: they hold any UTF-8 a caller may choose (text refuses NUL)
--     and sort as Go sorts them. Read them with convert_from(name, 'UTF8') or
--     SET bytea_output = 'escape'.
--   times are microseconds since the epoch: governed time of the ledger's
--     clock, except where a column says raw. 0 means never.
--   durations (ttl, retry_after, rtt, rate_per) are microseconds.
--   all else is whole tokens. Arithmetic is done by the allocator; here are
--     only its results, one column per field, so that an audit can add them up.

-- +goose Up
CREATE TABLE ledger_clock (
    one      boolean PRIMARY KEY DEFAULT true CHECK (one),
    shift    bigint  NOT NULL DEFAULT 0, -- governed = the database's reading - shift
    governed bigint  NOT NULL DEFAULT 0, -- last written; 0 before the first start
    raw      bigint  NOT NULL DEFAULT 0  -- highest reading written
);
INSERT INTO ledger_clock DEFAULT VALUES;

CREATE TABLE ledger_version (
    one     boolean PRIMARY KEY DEFAULT true CHECK (one),
    version bigint  NOT NULL DEFAULT 0 -- of the budget changed last
);
INSERT INTO ledger_version DEFAULT VALUES;

CREATE TABLE budgets (
    name       bytea  PRIMARY KEY,
    version    bigint NOT NULL UNIQUE,
    policy     json   NOT NULL, -- json, not jsonb: names in it may hold NUL
    next_due   bigint NOT NULL, -- when the sweep must look; 0 for never
    written_at bigint NOT NULL  -- governed time of the last transaction
);
CREATE INDEX budgets_due ON budgets (next_due) WHERE next_due <> 0;

CREATE TABLE pools (
    budget       bytea  NOT NULL REFERENCES budgets,
    window_start bigint NOT NULL, -- raw; 0 for a bucket
    window_end   bigint NOT NULL, -- raw; 0 for a bucket
    rate_tokens  bigint NOT NULL,
    rate_per     bigint NOT NULL,
    burst        bigint NOT NULL,
    float_tokens bigint NOT NULL,
    available    bigint NOT NULL, -- negative is debt
    x            bigint NOT NULL,
    outstanding  bigint NOT NULL,
    minted_at    bigint NOT NULL,
    carry        bigint NOT NULL,

    total_start             bigint NOT NULL,
    total_minted            bigint NOT NULL,
    total_adjusted          bigint NOT NULL,
    total_clamped           bigint NOT NULL,
    total_share_given       bigint NOT NULL,
    total_share_returned    bigint NOT NULL,
    total_share_used        bigint NOT NULL,
    total_share_written_off bigint NOT NULL,
    total_lump_granted      bigint NOT NULL,
    total_lump_used         bigint NOT NULL,
    total_lump_returned     bigint NOT NULL,
    total_lump_written_off  bigint NOT NULL,
    total_late_used         bigint NOT NULL,
    total_late_credited     bigint NOT NULL,
    total_debt              bigint NOT NULL,

    purged_given          bigint NOT NULL,
    purged_share_returned bigint NOT NULL,
    purged_share_used     bigint NOT NULL,
    purged_granted        bigint NOT NULL,
    purged_used           bigint NOT NULL,
    purged_returned       bigint NOT NULL,
    purged_written_off    bigint NOT NULL,

    alarms bigint NOT NULL,
    PRIMARY KEY (budget, window_start)
) WITH (fillfactor = 70); -- room to rewrite a row without touching its index

CREATE TABLE leases (
    budget        bytea    NOT NULL REFERENCES budgets,
    region        bytea    NOT NULL,
    kind          smallint NOT NULL, -- 1 reserve, 2 paced, 3 lump
    incarnation   bytea    NOT NULL,
    window_start  bigint   NOT NULL, -- of its pool
    seq           bigint   NOT NULL, -- an unsigned number's bits
    granted       bigint   NOT NULL,
    used          bigint   NOT NULL,
    returned      bigint   NOT NULL,
    x             bigint   NOT NULL,
    told_x        bigint   NOT NULL,
    beta          bigint   NOT NULL,
    told_beta     bigint   NOT NULL,
    minted        bigint   NOT NULL,
    mint_carry    bigint   NOT NULL,
    minted_at     bigint   NOT NULL,
    hold          bigint   NOT NULL,
    ttl           bigint   NOT NULL,
    reclaim       bigint   NOT NULL,
    keep          bigint   NOT NULL,
    short         smallint NOT NULL, -- lease.Shortage
    retry_after   bigint   NOT NULL,
    closing       boolean  NOT NULL,
    ending        text     NOT NULL, -- '' while it has not ended
    ended_at      bigint   NOT NULL,
    written_off   bigint   NOT NULL,
    late_used     bigint   NOT NULL,
    late_returned bigint   NOT NULL,
    late_credited bigint   NOT NULL,
    PRIMARY KEY (budget, region, kind, incarnation)
) WITH (fillfactor = 70);

CREATE TABLE regions (
    budget         bytea            NOT NULL REFERENCES budgets,
    name           bytea            NOT NULL,
    demand         double precision NOT NULL, -- tokens per second, an estimate
    demand_total   bigint           NOT NULL,
    waiting        bigint           NOT NULL,
    want           bigint           NOT NULL,
    rtt            bigint           NOT NULL,
    seen_at        bigint           NOT NULL,
    paced          boolean          NOT NULL,
    window_start   bigint           NOT NULL,
    window_granted bigint           NOT NULL,
    PRIMARY KEY (budget, name)
);

CREATE TABLE locals (
    budget  bytea  NOT NULL REFERENCES budgets,
    region  bytea  NOT NULL,
    source  bytea  NOT NULL,
    total   bigint NOT NULL,
    seen_at bigint NOT NULL,
    PRIMARY KEY (budget, region, source)
);

-- +goose Down
DROP TABLE locals, regions, leases, pools, budgets, ledger_version, ledger_clock;
