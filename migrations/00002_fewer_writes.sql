-- What every transaction rewrites finds room beside itself, so that no index is
-- touched. budgets is no longer rewritten by each: next_due may be early, and
-- moves when it has come.

-- +goose Up
ALTER TABLE budgets DROP COLUMN written_at;
ALTER TABLE pools SET (fillfactor = 50);
ALTER TABLE leases SET (fillfactor = 50);
ALTER TABLE regions SET (fillfactor = 50);
ALTER TABLE locals SET (fillfactor = 50);

-- +goose Down
ALTER TABLE locals RESET (fillfactor);
ALTER TABLE regions RESET (fillfactor);
ALTER TABLE leases SET (fillfactor = 70);
ALTER TABLE pools SET (fillfactor = 70);
ALTER TABLE budgets ADD COLUMN written_at bigint NOT NULL DEFAULT 0;
