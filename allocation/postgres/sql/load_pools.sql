SELECT
    budget, window_start, window_end, rate_tokens, rate_per, burst, float_tokens,
    available, x, outstanding, minted_at, carry, total_start, total_minted, total_adjusted,
    total_clamped, total_share_given, total_share_returned, total_share_used,
    total_share_written_off, total_lump_granted, total_lump_used, total_lump_returned,
    total_lump_written_off, total_late_used, total_late_credited, total_debt, purged_given,
    purged_share_returned, purged_share_used, purged_granted, purged_used, purged_returned,
    purged_written_off, alarms
FROM pools
WHERE budget = ANY ($1::bytea[])
ORDER BY budget, window_start
