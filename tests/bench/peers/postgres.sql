-- What tallyd is compared with, as hll's users keep it: a sketch and a counter for each page and each site of a minute, which
-- users were there on a day, and who has seen what.  14 and 5: 16,384 registers, as Redis has.
CREATE EXTENSION hll;
CREATE TABLE page_minutes (minute timestamp, page text, visitors hll, views bigint, PRIMARY KEY (minute, page));
CREATE TABLE site_minutes (minute timestamp PRIMARY KEY, visitors hll, views bigint);
CREATE TABLE user_days (day date, visitor text, PRIMARY KEY (day, visitor));
CREATE TABLE seen (visitor text, page text, PRIMARY KEY (visitor, page));
CREATE FUNCTION fold() RETURNS void LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO page_minutes
    SELECT date_trunc('minute', at), page, hll_add_agg(hll_hash_text(visitor), 14, 5), count(*) FROM batch
      GROUP BY 1, 2 ORDER BY 1, 2
    ON CONFLICT (minute, page) DO UPDATE
      SET visitors = page_minutes.visitors || excluded.visitors, views = page_minutes.views + excluded.views;
  INSERT INTO site_minutes
    SELECT date_trunc('minute', at), hll_add_agg(hll_hash_text(visitor), 14, 5), count(*) FROM batch GROUP BY 1
    ON CONFLICT (minute) DO UPDATE
      SET visitors = site_minutes.visitors || excluded.visitors, views = site_minutes.views + excluded.views;
  INSERT INTO user_days SELECT DISTINCT at::date, visitor FROM batch ORDER BY 1, 2 ON CONFLICT DO NOTHING;
  INSERT INTO seen SELECT DISTINCT visitor, page FROM batch ORDER BY 1, 2 ON CONFLICT DO NOTHING;
END $$;
