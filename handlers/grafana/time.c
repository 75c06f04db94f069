#include "handlers/grafana/time.h"

#include <math.h>
#include <stdio.h>

#include "handlers/reply/json_body.h"

bool grafana_time(const json_t *value, const struct zone *zone, int64_t now_ms,
    enum timestamp_round round, int64_t *ret_s, bool *ret_is_now, const char **ret_detail)
{
    char digits[32];
    struct slice text = json_text_of(value);
    if (json_is_number(value)) {
        double number = json_number_value(value);
        if (!(number >= 0 && number < 1e15)) {
            *ret_detail = "must be a time";
            return false;
        }
        int decimals = number == floor(number) ? 0 : 6;
        text = (struct slice){
            digits, (size_t)snprintf(digits, sizeof(digits), "%.*f", decimals, number)};
    }
    return timestamp_parameter(text, zone, now_ms, round, ret_s, ret_is_now, ret_detail);
}
