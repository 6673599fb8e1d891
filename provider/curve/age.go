// SPDX-License-Identifier: Apache-2.0

package curve

import (
	"context"
	"slices"
	"time"

	"github.com/prometheus/common/model"

	"github.com/capstan-dev/capstan/provider/internal/prometheus"
	"github.com/capstan-dev/capstan/provider/internal/promq"
	"github.com/capstan-dev/capstan/provider/modelserver"
)

const (
	// longest is how far back the beginning of a rollout is sought: as far as its evidence counts.
	longest = 6 * time.Hour
	// pace of that search.
	pace = 5 * time.Minute
)

// age of the revision in a slot, rounded up by the pace. Pods of one revision are replaced one by one, so that two moments have some of
// them in common. A moment without a common pod was another revision's.
func (s *Source) age(ctx context.Context, pods prometheus.Pods, now time.Time) (time.Duration, error) {
	history := promq.NewHistory(s.prometheus, prometheus.Range{Start: now.Add(-longest), End: now, Step: pace})
	first, later := now, map[model.LabelValue]bool(nil)
	for _, at := range slices.Backward(history.Moments()) {
		v, err := history.At(at).QueryAt(ctx, pods, modelserver.Scraped, time.Time{})
		if err != nil {
			return 0, failed(err)
		}
		there := map[model.LabelValue]bool{}
		common := later == nil
		lines, _ := v.(model.Vector)
		for _, l := range lines {
			pod := l.Metric[modelserver.LabelPod]
			there[pod] = true
			common = common || later[pod]
		}
		if len(there) == 0 || !common {
			break
		}
		first, later = at, there
	}
	return min(now.Sub(first)+pace, longest), nil
}
