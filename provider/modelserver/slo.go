// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"fmt"
	"regexp"
	"strings"
)

// everySeconds is every in seconds: a rate that is recorded each 15 s stands for as many requests as it has in that time.
const everySeconds = 15

// Counted is a query of the numbers of requests and failures within a long window, of all pods together. It reads what the rules
// recorded, so that a month costs four series of numbers however many pods there were.
func Counted(window string) string {
	of := func(record string) string {
		return fmt.Sprintf("%d * sum(sum_over_time(%s[%s]))", everySeconds, record, window)
	}
	return joined(measure(MeasureRequests, of(RecordRequests)), measure(MeasureFailures, of(RecordFailures)))
}

// Age is a query of how many seconds ago pods were scraped first within a window, to a step.
func Age(window, step string) string {
	return fmt.Sprintf("time() - min(min_over_time(timestamp(up)[%s:%s]))", window, step)
}

// Buckets is an expression of the buckets of the latency in a window, or of the buckets that end at some values of le only.
func (s Server) Buckets(window string, only ...string) string {
	selector := s.Latency.Buckets
	if len(only) > 0 {
		quoted := make([]string, 0, len(only))
		for _, le := range only {
			quoted = append(quoted, regexp.QuoteMeta(le))
		}
		name, matchers, found := strings.Cut(selector, "{")
		if found {
			matchers = "," + matchers
		} else {
			matchers = "}"
		}
		selector = fmt.Sprintf("%s{le=~%q%s", name, strings.Join(quoted, "|"), matchers)
	}
	return fmt.Sprintf("sum by (le) (increase(%s[%s]))", selector, window)
}
