-- Who did it and when, ms since 1970-01-01 UTC; NULL = nobody in person.
ALTER TABLE event ADD COLUMN by TEXT;
ALTER TABLE event ADD COLUMN at INTEGER;
