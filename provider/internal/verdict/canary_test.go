// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	apis "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/promq"
	"github.com/capstan-dev/capstan/provider/internal/stats"
)

// A slotSeen is what was seen of the pods of a slot. The latency is spread evenly up to a greatest one, and scores up to 1.
type slotSeen struct {
	requests, failures float64
	upTo, beyond       float64
	why                promq.Reading
	value              promq.Reading
	scores             []float64
	inFlight           float64
}

func seenAs(slots map[string]slotSeen) promq.Sample {
	s := promq.NewSample()
	for slot, of := range slots {
		n := of.requests
		m := &promq.Measures{
			Requests: promq.Reading{Value: n}, Failures: promq.Reading{Value: of.failures}, InFlight: promq.Reading{Value: of.inFlight},
			Latency: promq.Distribution{Histogram: stats.NewHistogram([]stats.Bucket{
				{End: of.upTo / 2, Count: n / 2}, {End: of.upTo * 0.9, Count: (n - of.beyond) * 0.9}, {End: of.upTo, Count: n - of.beyond}, {End: math.Inf(1), Count: n},
			})},
		}
		if n == 0 {
			m.Latency = promq.Distribution{Reading: promq.NoData(promq.NoRequests)}
		}
		if !of.why.Known() {
			m.Requests, m.Failures, m.InFlight, m.Latency = of.why, of.why, of.why, promq.Distribution{Reading: of.why}
		}
		m.Tokens = promq.Tokens{First: m.Latency, Each: m.Latency, Generated: m.Requests, Waiting: m.InFlight, Cache: m.InFlight}
		s.Slots[slot] = m
		s.Checks[promq.Place{Slot: slot, Check: "check"}] = of.value
		switch {
		case !of.why.Known():
			s.Distributions[promq.Place{Slot: slot, Check: "check"}] = promq.Distribution{Reading: of.why}
		case of.scores != nil:
			s.Distributions[promq.Place{Slot: slot, Check: "check"}] = promq.Distribution{Histogram: summed(of.scores, scoreEnds(len(of.scores)))}
		}
	}
	return s
}

// weigh a check of a canary.
func weigh(c v1alpha1.Check, p *v1alpha1.CanaryParameters, e *promq.Evidence, ready func(string) int) (v1alpha1.Verdict, Verdict) {
	v := ofCanary(c, p, e, ready)
	return v.Is, v
}

func vector(values ...float64) model.Vector {
	var v model.Vector
	for i, x := range values {
		v = append(v, &model.Sample{Metric: model.Metric{"i": model.LabelValue(strconv.Itoa(i))}, Value: model.SampleValue(x)})
	}
	return v
}

func TestWeigh(t *testing.T) {
	const pass, fail, insufficient, none, wrong = v1alpha1.VerdictPass, v1alpha1.VerdictFail, v1alpha1.VerdictInsufficient, v1alpha1.VerdictNoData, v1alpha1.VerdictError
	success := v1alpha1.Check{Kind: v1alpha1.CheckSuccessRatio, Min: new(0.99)}
	against := v1alpha1.Check{Kind: v1alpha1.CheckSuccessRatio, RelativeTo: v1alpha1.RelativeToBaseline}
	latency := v1alpha1.Check{Kind: v1alpha1.CheckLatency, Percentile: 95, Max: new(50.0)}
	slower := v1alpha1.Check{Kind: v1alpha1.CheckLatency, Percentile: 95, Max: new(1.1), RelativeTo: v1alpha1.RelativeToBaseline}
	firstToken := v1alpha1.Check{Kind: v1alpha1.CheckFirstToken, Percentile: 95, Max: new(50.0)}
	eachToken := v1alpha1.Check{Kind: v1alpha1.CheckEachToken, Percentile: 95, Max: new(50.0)}
	query := v1alpha1.Check{Kind: v1alpha1.CheckQuery, Query: "queue", Max: new(10.0)}
	ratio := v1alpha1.Check{Kind: v1alpha1.CheckQuery, Query: "revenue", Min: new(0.98), RelativeTo: v1alpha1.RelativeToBaseline}
	drift := v1alpha1.Check{Kind: v1alpha1.CheckDrift, Query: "scores", Max: new(0.2), RelativeTo: v1alpha1.RelativeToBaseline}
	ks := v1alpha1.Check{Kind: v1alpha1.CheckDrift, Query: "scores", Max: new(0.1), Method: v1alpha1.DriftKS, RelativeTo: v1alpha1.RelativeToBaseline}
	missing := slotSeen{why: promq.NoData(promq.NotScraped)}
	refused := slotSeen{why: promq.Misused("wrong")}
	of := func(v float64) slotSeen { return slotSeen{requests: 500, value: promq.Reading{Value: v}} }
	even, odd := []float64{250, 250, 250, 250}, []float64{100, 100, 400, 400}
	cases := map[string]struct {
		reason string
		check  v1alpha1.Check

		// whole is what was seen of the canary and of its baseline in ten minutes, and recent in two. It is the same when there
		// is none.
		whole, baseline   slotSeen
		recent            *slotSeen
		without, unready  bool
		want              v1alpha1.Verdict
		message           string
		value, comparison float64
		samples           float64
	}{
		"Success":             {reason: "Enough, and well.", check: success, whole: slotSeen{requests: 1043, failures: 3}, baseline: slotSeen{requests: 4000, failures: 20}, want: pass, value: 0.99712, comparison: 0.995, samples: 1043},
		"SuccessFails":        {reason: "Too many failures, with their odds.", check: success, whole: slotSeen{requests: 1043, failures: 30}, want: fail, message: "97.12 % of 1,043 succeed, at least 99 % asked; sequential odds 32,092:1", value: 0.9712, samples: 1043},
		"SuccessFailsLately":  {reason: "What went wrong lately is not outweighed by what went well.", check: success, whole: slotSeen{requests: 9000, failures: 60}, recent: &slotSeen{requests: 600, failures: 60}, want: fail, message: "90 % of the last 600 succeed, at least 99 % asked; odds more than 1,000,000:1", value: 0.99333, samples: 9000},
		"SuccessFailsAtOnce":  {reason: "What fails always needs no hundred requests to be found out.", check: success, whole: slotSeen{requests: 5, failures: 5}, want: fail, message: "0 % of 5 succeed, at least 99 % asked; sequential odds more than 1,000,000:1", samples: 5},
		"SuccessOneFails":     {reason: "One failure is no proof, even if it is all there is.", check: success, whole: slotSeen{requests: 1, failures: 1}, want: insufficient, message: "1 request, at least 268 are needed: 267 more, about 45 h at this rate", samples: 1},
		"SuccessFew":          {reason: "Too few, and how many more and how long it takes.", check: success, whole: slotSeen{requests: 41}, want: insufficient, message: "41 requests, at least 268 are needed: 227 more, about 56 min at this rate", value: 1, samples: 41},
		"SuccessMore":         {reason: "Enough requests, and not enough for this share.", check: success, whole: slotSeen{requests: 400, failures: 2}, want: insufficient, message: "99.5 % of 400 succeed, at least 99 % asked: too few to decide, 672 more are needed if the share stays the same, about 17 min at this rate", value: 0.995, samples: 400},
		"SuccessEither":       {reason: "At the border nobody knows how many it takes.", check: success, whole: slotSeen{requests: 400, failures: 4}, want: insufficient, message: "99 % of 400 succeed, at least 99 % asked: too few to decide either", value: 0.99, samples: 400},
		"SuccessBothFail":     {reason: "What the baseline fails as well is not the fault of the canary.", check: success, whole: slotSeen{requests: 500, failures: 500}, baseline: slotSeen{requests: 2000, failures: 2000}, want: shared, message: "0 % of 500 succeed, at least 99 % asked, and of the baseline 0 % of 2,000: both fail, so that it is no fault of the canary alone", samples: 500},
		"SuccessSeenEarlier":  {reason: "Of a fault that has just begun a scrape more of the canary was seen.", check: success, whole: slotSeen{requests: 1000, failures: 300}, baseline: slotSeen{requests: 4000, failures: 600}, want: shared, message: "70 % of 1,000 succeed, at least 99 % asked, and of the baseline 85 % of 4,000: both fail, so that it is no fault of the canary alone", value: 0.7, comparison: 0.85, samples: 1000},
		"SuccessMuchWorse":    {reason: "A fault that both have does not excuse one that only the canary has.", check: success, whole: slotSeen{requests: 1000, failures: 500}, baseline: slotSeen{requests: 4000, failures: 80}, want: fail, message: "50 % of 1,000 succeed, at least 99 % asked; sequential odds more than 1,000,000:1", value: 0.5, comparison: 0.98, samples: 1000},
		"SuccessBaselineWell": {reason: "A baseline that passes shows that the canary is at fault, also where it is hardly worse.", check: success, whole: slotSeen{requests: 1043, failures: 30}, baseline: slotSeen{requests: 4000, failures: 40}, want: fail, message: "97.12 % of 1,043 succeed, at least 99 % asked; sequential odds 32,092:1", value: 0.9712, comparison: 0.99, samples: 1043},
		"LatencyBothSlow":     {reason: "What slows both is not the fault of the canary.", check: latency, whole: slotSeen{requests: 1000, upTo: 200}, baseline: slotSeen{requests: 1000, upTo: 190}, want: shared, message: "p95 of 1,000 is 190 ms, at most 50 ms asked, and the baseline is as slow: both fail, so that it is no fault of the canary alone", value: 190, comparison: 180.5, samples: 1000},
		"FirstTokenSlow":      {reason: "A first token that comes late is the canary's fault.", check: firstToken, whole: slotSeen{requests: 1000, upTo: 200}, baseline: slotSeen{requests: 1000, upTo: 40}, want: fail, message: "p95 of 1,000 is 190 ms, at most 50 ms asked; sequential odds more than 1,000,000:1", value: 190, comparison: 38, samples: 1000},
		"FirstTokenBothSlow":  {reason: "Unless both are slow.", check: firstToken, whole: slotSeen{requests: 1000, upTo: 200}, baseline: slotSeen{requests: 1000, upTo: 190}, want: shared, message: "p95 of 1,000 is 190 ms, at most 50 ms asked, and the baseline is as slow: both fail, so that it is no fault of the canary alone", value: 190, comparison: 180.5, samples: 1000},
		"EachTokenWell":       {reason: "Tokens that follow fast enough.", check: eachToken, whole: slotSeen{requests: 1000, upTo: 40}, baseline: slotSeen{requests: 1000, upTo: 40}, want: pass, value: 38, comparison: 38, samples: 1000},
		"QueryBothFail":       {reason: "Nor is what both do otherwise than asked.", check: query, whole: of(12), baseline: of(11), want: shared, message: "12, at most 10 asked, and the baseline fails as well: it is no fault of the canary alone", value: 12, samples: 500},
		"SuccessIdle":         {reason: "No traffic is neither.", check: success, want: insufficient, message: "no request yet, at least 100 are needed"},
		"SuccessMissing":      {reason: "An empty slot tells nothing.", check: success, whole: missing, want: none, message: promq.NotScraped},
		"SuccessGone":         {reason: "Nor one that has become empty.", check: success, whole: slotSeen{requests: 1000}, recent: &missing, want: none, message: promq.NotScraped},
		"SuccessWrong":        {reason: "A query that is wrong is told.", check: success, whole: refused, want: wrong, message: "wrong"},
		"SuccessLonely":       {reason: "A bound needs no baseline.", check: success, whole: slotSeen{requests: 1000}, without: true, want: pass, value: 1, samples: 1000},
		"SuccessAll":          {reason: "That all succeed is never known.", check: v1alpha1.Check{Kind: v1alpha1.CheckSuccessRatio, Min: new(1.0)}, whole: slotSeen{requests: 1000}, want: insufficient, message: notAll, value: 1, samples: 1000},
		"SuccessMost":         {reason: "Some shares are not to be too great.", check: v1alpha1.Check{Kind: v1alpha1.CheckSuccessRatio, Max: new(0.5)}, whole: slotSeen{requests: 1000, failures: 100}, want: fail, message: "90 % of 1,000 succeed, at most 50 % asked; sequential odds more than 1,000,000:1", value: 0.9, samples: 1000},
		"SuccessMostUnknown":  {reason: "Or are not known to be.", check: v1alpha1.Check{Kind: v1alpha1.CheckSuccessRatio, Max: new(0.5)}, whole: slotSeen{requests: 1000, failures: 500}, want: insufficient, message: "50 % of 1,000 succeed, at most 50 % asked: too few to decide", value: 0.5, samples: 1000},
		"SuccessBetween":      {reason: "Or lie within bounds.", check: v1alpha1.Check{Kind: v1alpha1.CheckSuccessRatio, Min: new(0.4), Max: new(0.6)}, whole: slotSeen{requests: 1000, failures: 500}, want: pass, value: 0.5, samples: 1000},
		"Against":             {reason: "As good as the baseline.", check: against, whole: slotSeen{requests: 1000, failures: 5}, baseline: slotSeen{requests: 4000, failures: 20}, want: pass, value: 0.995, comparison: 0.995, samples: 1000},
		"AgainstFails":        {reason: "Worse than it.", check: against, whole: slotSeen{requests: 1000, failures: 50}, baseline: slotSeen{requests: 4000, failures: 20}, want: fail, message: "95 % of 1,000 succeed, and 99.5 % of 4,000 of the baseline; sequential odds 2,426:1", value: 0.95, comparison: 0.995, samples: 1000},
		"AgainstFailsLately":  {reason: "Worse than it lately.", check: against, whole: slotSeen{requests: 9000, failures: 60}, recent: &slotSeen{requests: 600, failures: 60}, baseline: slotSeen{requests: 9000, failures: 45}, want: fail, message: "recently 90 % of 600 succeed, and 99.5 % of 9,000 of the baseline; odds 10,230:1", value: 0.99333, comparison: 0.995, samples: 9000},
		"AgainstBetter":       {reason: "Much better is well.", check: against, whole: slotSeen{requests: 1000}, baseline: slotSeen{requests: 4000, failures: 4000}, want: pass, value: 1, samples: 1000},
		"AgainstNoFailures":   {reason: "Where neither fails there is no variance, and nothing to doubt.", check: against, whole: slotSeen{requests: 1000}, baseline: slotSeen{requests: 4000}, want: pass, value: 1, comparison: 1, samples: 1000},
		"AgainstAllFail":      {reason: "Nor where one always does and the other never.", check: against, whole: slotSeen{requests: 1000, failures: 1000}, baseline: slotSeen{requests: 4000}, want: fail, message: "0 % of 1,000 succeed, and 100 % of 4,000 of the baseline; sequential odds more than 1,000,000:1", comparison: 1, samples: 1000},
		"AgainstBothFail":     {reason: "A canary is not to blame for what its baseline does, too.", check: against, whole: slotSeen{requests: 1000, failures: 1000}, baseline: slotSeen{requests: 4000, failures: 4000}, want: pass, samples: 1000},
		"AgainstUnclear":      {reason: "That it seems worse is no proof, and no reason to go on.", check: against, whole: slotSeen{requests: 200, failures: 3}, baseline: slotSeen{requests: 800, failures: 4}, want: insufficient, message: "98.5 % of 200 succeed, and 99.5 % of 800 of the baseline: too few to know that it is not worse", value: 0.985, comparison: 0.995, samples: 200},
		"AgainstFew":          {reason: "Too few of the canary.", check: against, whole: slotSeen{requests: 41}, baseline: slotSeen{requests: 4000}, want: insufficient, message: "41 requests, at least 100 are needed: 59 more, about 15 min at this rate", value: 1, comparison: 1, samples: 41},
		"AgainstFewBaseline":  {reason: "Too few of the baseline.", check: against, whole: slotSeen{requests: 400}, baseline: slotSeen{requests: 50}, want: insufficient, message: "of the baseline: 50 requests, at least 100 are needed: 50 more, about 10 min at this rate", value: 1, comparison: 1, samples: 400},
		"AgainstIdle":         {reason: "None of the canary.", check: against, baseline: slotSeen{requests: 50}, want: insufficient, message: "no request yet, at least 100 are needed", comparison: 1},
		"AgainstIdleBaseline": {reason: "None of the baseline.", check: against, whole: slotSeen{requests: 400}, want: insufficient, message: "of the baseline: no request yet, at least 100 are needed", value: 1, samples: 400},
		"AgainstMissing":      {reason: "A baseline that is not there is no baseline.", check: against, whole: slotSeen{requests: 400}, baseline: missing, want: none, message: ofTheBaseline + promq.NotScraped, samples: 400},
		"AgainstNothing":      {reason: "Nor is one that is not named.", check: against, whole: slotSeen{requests: 400}, without: true, want: none, message: noBaseline},
		"Latency":             {reason: "Fast enough.", check: latency, whole: slotSeen{requests: 1000, upTo: 50}, baseline: slotSeen{requests: 1000, upTo: 40}, want: pass, value: 47.5, comparison: 38, samples: 1000},
		"LatencyFails":        {reason: "Too slow.", check: latency, whole: slotSeen{requests: 1000, upTo: 80}, want: fail, message: "p95 of 1,000 is 76 ms, at most 50 ms asked; sequential odds more than 1,000,000:1", value: 76, samples: 1000},
		"LatencyLately":       {reason: "Too slow lately.", check: latency, whole: slotSeen{requests: 9000, upTo: 50}, recent: &slotSeen{requests: 600, upTo: 80}, want: fail, message: "p95 of the last 600 is 76 ms, at most 50 ms asked; odds more than 1,000,000:1", value: 47.5, samples: 9000},
		"LatencyPause":        {reason: "That nobody called lately takes nothing from what was seen.", check: latency, whole: slotSeen{requests: 9000, upTo: 50}, recent: &slotSeen{}, want: pass, value: 47.5, samples: 9000},
		"LatencyFew":          {reason: "Too few.", check: latency, whole: slotSeen{requests: 40, upTo: 50}, want: insufficient, message: "40 requests, at least 100 are needed: 60 more, about 15 min at this rate", value: 47.5, samples: 40},
		"LatencyBorder":       {reason: "Too near.", check: latency, whole: slotSeen{requests: 1000, upTo: 52.6}, want: insufficient, message: "p95 of 1,000 is 50 ms, at most 50 ms asked: too few to decide", value: 50, samples: 1000},
		"LatencyIdle":         {reason: "None.", check: latency, want: insufficient, message: "no request yet, at least 100 are needed"},
		"LatencyBeyond":       {reason: "Buckets that end before the bound.", check: v1alpha1.Check{Kind: v1alpha1.CheckLatency, Percentile: 95, Max: new(90.0)}, whole: slotSeen{requests: 1000, upTo: 80, beyond: 100}, want: insufficient, message: "the histogram has no bucket above 80 ms: add some, or lower the maximum", value: 80, samples: 1000},
		"SlowerBeyond":        {reason: "A baseline that is.", check: slower, whole: slotSeen{requests: 1000, upTo: 80}, baseline: slotSeen{requests: 1000, upTo: 80, beyond: 100}, want: insufficient, message: "p95 of the baseline is above the largest bucket, which ends at 80 ms: add some", comparison: 80, samples: 1000},
		"LatencyMissing":      {reason: "No pods.", check: latency, whole: missing, want: none, message: promq.NotScraped},
		"LatencyLeast":        {reason: "A least latency.", check: v1alpha1.Check{Kind: v1alpha1.CheckLatency, Percentile: 50, Min: new(60.0)}, whole: slotSeen{requests: 1000, upTo: 80}, want: fail, message: "p50 of 1,000 is 40 ms, at least 60 ms asked; sequential odds more than 1,000,000:1", value: 40, samples: 1000},
		"Slower":              {reason: "Hardly slower.", check: slower, whole: slotSeen{requests: 1000, upTo: 101}, baseline: slotSeen{requests: 4000, upTo: 100}, want: pass, value: 1.01, comparison: 95, samples: 1000},
		"SlowerFails":         {reason: "Slower.", check: slower, whole: slotSeen{requests: 1000, upTo: 150}, baseline: slotSeen{requests: 4000, upTo: 100}, want: fail, message: "p95 of 1,000 is 143 ms, 1.5 times the 95 ms of the baseline, at most 1.1 times asked", value: 1.5, comparison: 95, samples: 1000},
		"SlowerLately":        {reason: "Slower lately.", check: slower, whole: slotSeen{requests: 9000, upTo: 100}, recent: &slotSeen{requests: 600, upTo: 150}, baseline: slotSeen{requests: 9000, upTo: 100}, want: fail, message: "p95 of the last 600 is 143 ms, and 95 ms of the baseline, at most 1.1 times asked", value: 1, comparison: 95, samples: 9000},
		"SlowerUnclear":       {reason: "Near the bound.", check: slower, whole: slotSeen{requests: 1000, upTo: 110}, baseline: slotSeen{requests: 4000, upTo: 100}, want: insufficient, message: "p95 of 1,000 is 105 ms, 1.1 times the 95 ms of the baseline, at most 1.1 times asked: too few to decide", value: 1.1, comparison: 95, samples: 1000},
		"SlowerFew":           {reason: "Too few of the baseline.", check: slower, whole: slotSeen{requests: 1000, upTo: 110}, baseline: slotSeen{requests: 40, upTo: 100}, want: insufficient, message: "of the baseline: 40 requests, at least 100 are needed: 60 more, about 15 min at this rate", comparison: 95, samples: 1000},
		"SlowerIdle":          {reason: "None of the baseline.", check: slower, whole: slotSeen{requests: 1000, upTo: 110}, want: insufficient, message: "of the baseline: no request yet, at least 100 are needed", samples: 1000},
		"SlowerMissing":       {reason: "No baseline.", check: slower, whole: slotSeen{requests: 1000, upTo: 110}, baseline: missing, want: none, message: ofTheBaseline + promq.NotScraped, samples: 1000},
		"Query":               {reason: "A value within its bound.", check: query, whole: of(9), want: pass, value: 9, samples: 500},
		"QueryFails":          {reason: "One that is not.", check: query, whole: of(12.3), want: fail, message: "12.3, at most 10 asked", value: 12.3, samples: 500},
		"QueryFew":            {reason: "Too few requests make no value.", check: query, whole: slotSeen{requests: 41, value: promq.Reading{Value: 99}}, want: insufficient, message: "41 requests, at least 100 are needed: 59 more, about 15 min at this rate", value: 99, samples: 41},
		"QueryUncounted":      {reason: "Where requests are not known the value counts.", check: query, whole: slotSeen{why: promq.NoData(promq.NotKnown), value: promq.Reading{Value: 3}}, want: pass, value: 3},
		"QueryNaN":            {reason: "What is not a number is none.", check: query, whole: slotSeen{requests: 500, value: promq.NoData("the value is not a number")}, want: none, message: "the value is not a number", samples: 500},
		"QueryWrong":          {reason: "A query that is wrong is told.", check: query, whole: slotSeen{requests: 500, value: promq.Misused("wrong")}, want: wrong, message: "wrong", samples: 500},
		"Ratio":               {reason: "Nearly as much.", check: ratio, whole: of(99), baseline: of(100), want: pass, value: 0.99, comparison: 100, samples: 500},
		"RatioFails":          {reason: "Less.", check: ratio, whole: of(90), baseline: of(100), want: fail, message: "0.9 times the 100 of the baseline, at least 0.98 times asked", value: 0.9, comparison: 100, samples: 500},
		"RatioZero":           {reason: "Nothing is a multiple of zero.", check: ratio, whole: of(90), baseline: of(0), want: none, message: baselineIsZero, samples: 500},
		"RatioMissing":        {reason: "Nor of nothing.", check: ratio, whole: of(90), baseline: slotSeen{value: promq.NoData(promq.NotFound)}, want: none, message: ofTheBaseline + promq.NotFound, samples: 500},
		"RequestRate":         {reason: "Per replica, in the recent window.", check: v1alpha1.Check{Kind: v1alpha1.CheckRequestRate, Max: new(2.0)}, whole: slotSeen{requests: 1200}, want: fail, message: "5, at most 2 asked", value: 5, samples: 1200},
		"RequestRateNobody":   {reason: "Without replicas there is nothing per replica.", check: v1alpha1.Check{Kind: v1alpha1.CheckRequestRate, Max: new(2.0)}, whole: slotSeen{requests: 1200}, unready: true, want: none, message: noReplica, samples: 1200},
		"InFlight":            {reason: "Per replica.", check: v1alpha1.Check{Kind: v1alpha1.CheckInFlight, Max: new(2.0)}, whole: slotSeen{requests: 1200, inFlight: 3}, want: pass, value: 1.5, samples: 1200},
		"Drift":               {reason: "The same distribution.", check: drift, whole: slotSeen{scores: even}, baseline: slotSeen{scores: even}, want: pass, samples: 1000},
		"DriftFails":          {reason: "Another.", check: drift, whole: slotSeen{scores: odd}, baseline: slotSeen{scores: even}, want: fail, message: "PSI is 0.408 between 1,000 samples and 1,000, at most 0.2 asked", value: 0.41, samples: 1000},
		"DriftLately":         {reason: "Another lately.", check: drift, whole: slotSeen{scores: even}, recent: &slotSeen{scores: odd}, baseline: slotSeen{scores: even}, want: fail, message: "PSI is 0.408 between the last 1,000 samples and 1,000, at most 0.2 asked", samples: 1000},
		"DriftFew":            {reason: "Too few.", check: drift, whole: slotSeen{scores: []float64{9, 9}}, baseline: slotSeen{scores: even}, want: insufficient, message: "18 samples, at least 200 are needed: 182 more, about 102 min at this rate", samples: 18},
		"DriftFewBefore":      {reason: "Too few to compare with.", check: drift, whole: slotSeen{scores: even}, baseline: slotSeen{scores: []float64{9, 9}}, want: insufficient, message: "of the baseline: 18 samples, at least 200 are needed: 182 more, about 102 min at this rate", samples: 1000},
		"DriftUnclear":        {reason: "Near the bound.", check: drift, whole: slotSeen{scores: []float64{130, 190, 310, 370}}, baseline: slotSeen{scores: even}, want: insufficient, message: "PSI is 0.148 between 1,000 samples and 1,000, at most 0.2 asked: too few to decide", value: 0.148, samples: 1000},
		"DriftBuckets":        {reason: "Buckets that nobody shares.", check: drift, whole: slotSeen{scores: []float64{500, 500, 500}}, baseline: slotSeen{scores: []float64{500, 500}}, want: none, message: noCommonBucket, samples: 1500},
		"DriftMissing":        {reason: "No series.", check: drift, whole: slotSeen{}, baseline: slotSeen{scores: even}, want: none, message: promq.NotFound},
		"DriftBaseline":       {reason: "None of the baseline.", check: drift, whole: slotSeen{scores: even}, baseline: missing, want: none, message: ofTheBaseline + promq.NotScraped},
		"KS":                  {reason: "By another method.", check: ks, whole: slotSeen{scores: odd}, baseline: slotSeen{scores: even}, want: fail, message: "KS is 0.297 between 1,000 samples and 1,000, at most 0.1 asked", value: 0.297, samples: 1000},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			recent := tc.recent
			if recent == nil {
				recent = &tc.whole
			}
			p := &v1alpha1.CanaryParameters{Slot: "b", Baseline: "a", MinSamples: 100}
			if tc.without {
				p.Baseline = ""
			}
			tc.check.Name = "check"
			e := &promq.Evidence{
				Window: 2 * time.Minute, Period: 10 * time.Minute,
				Recent: seenAs(map[string]slotSeen{"b": *recent, "a": tc.baseline}), Whole: seenAs(map[string]slotSeen{"b": tc.whole, "a": tc.baseline}),
			}
			got, told := weigh(tc.check, p, e, func(string) int { return map[bool]int{false: 2}[tc.unready] })
			if got != tc.want || told.Message != tc.message {
				t.Errorf("\n%s\nwant %s %q, got %s %q", tc.reason, tc.want, tc.message, got, told.Message)
			}
			for what, number := range map[string]struct {
				want float64
				got  *float64
			}{"value": {tc.value, told.Value}, "baseline": {tc.comparison, told.Baseline}} {
				if (number.got == nil && number.want != 0) || (number.got != nil && math.Abs(*number.got-number.want) > 0.006*math.Abs(number.want)) {
					t.Errorf("\n%s\n%s: want %g, got %+v", tc.reason, what, number.want, told)
				}
			}
			if tc.samples > 0 && (told.Samples == nil || float64(*told.Samples) != tc.samples) {
				t.Errorf("\n%s\nwant %g samples, got %+v", tc.reason, tc.samples, told)
			}
			again, toldAgain := weigh(tc.check, p, e, func(string) int { return map[bool]int{false: 2}[tc.unready] })
			if diff := cmp.Diff(told, toldAgain); diff != "" || again != got {
				t.Errorf("\n%s\nThe same evidence should give the same, got %s and %s, -first, +second:\n%s", tc.reason, got, again, diff)
			}
		})
	}
}

func TestWords(t *testing.T) {
	for n, want := range map[float64]string{0: "0", 12: "12", 999: "999", 1043: "1,043", 1234567: "1,234,567", -1043: "-1,043", 100: "100"} {
		if got := grouped(n); got != want {
			t.Errorf("grouped(%g): want %q, got %q", n, want, got)
		}
	}
	for d, want := range map[time.Duration]string{0: "0 s", 61 * time.Second: "61 s", 34*time.Minute + time.Second: "35 min", 5 * time.Hour: "5 h", 1e6 * time.Hour: "weeks"} {
		if got := lasting(d); got != want {
			t.Errorf("lasting(%s): want %q, got %q", d, want, got)
		}
	}
	for v, want := range map[float64]string{340.4: "340:1", 2300: "2,300:1", math.Inf(1): "more than 1,000,000:1"} {
		if got := oddsOf(v); got != want {
			t.Errorf("oddsOf(%g): want %q, got %q", v, want, got)
		}
	}
}

// FuzzWeigh gives checks any counts: a verdict is one of six, numbers are numbers and in order, and the same evidence gives the
// same.
func FuzzWeigh(f *testing.F) {
	f.Add(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.99, 50.0, uint8(0))
	f.Add(1043.0, 19.0, 600.0, 10.0, 4000.0, 20.0, 0.99, 50.0, uint8(1))
	f.Add(1e6, 1e5, 1e3, 1e9, 1e6, 0.0, 1.1, 0.0, uint8(2))
	f.Add(-5.0, math.NaN(), math.Inf(1), 3.0, 0.4, -1.0, -3.0, 1e300, uint8(3))
	f.Add(500.0, 20.0, 400.0, 2.0, 500.0, 3.0, 0.2, 10.0, uint8(4))
	f.Add(500.0, 20.0, 400.0, 2.0, 500.0, 3.0, 0.2, 10.0, uint8(13))
	kinds := []v1alpha1.CheckKind{
		v1alpha1.CheckSuccessRatio, v1alpha1.CheckLatency, v1alpha1.CheckQuery, v1alpha1.CheckRequestRate, v1alpha1.CheckInFlight, v1alpha1.CheckDrift,
		v1alpha1.CheckFirstToken, v1alpha1.CheckEachToken, v1alpha1.CheckTokenRate, v1alpha1.CheckWaiting, v1alpha1.CheckCacheUse,
	}
	f.Fuzz(func(t *testing.T, n, bad, recent, recentBad, baseline, baselineBad, bound, upTo float64, how uint8) {
		c := v1alpha1.Check{Name: "check", Kind: kinds[int(how)%len(kinds)], Percentile: []int32{50, 90, 95, 99}[how%4]}
		if how&16 == 0 {
			c.Min = &bound
		}
		if how&32 == 0 {
			c.Max = &bound
		}
		if how&64 == 0 {
			c.RelativeTo = v1alpha1.RelativeToBaseline
		}
		if how&128 == 0 {
			c.Method = v1alpha1.DriftKS
		}

		// As they would come from Prometheus.
		of := func(n, bad float64) slotSeen {
			count, failures := promq.Total(vector(n)), promq.Total(vector(bad))
			s := slotSeen{requests: max(count.Value, 0), failures: failures.Value, value: failures, upTo: math.Abs(promq.Total(vector(upTo)).Value) + 1}
			if !count.Known() {
				s.why = count
			}
			if s.scores = []float64{s.requests / 3, math.Abs(failures.Value), s.requests}; stats.NewHistogram([]stats.Bucket{{Count: s.scores[0] + s.scores[1]}, {End: math.Inf(1), Count: s.scores[0] + s.scores[1] + s.scores[2]}}) == nil {
				s.scores = nil
			}
			return s
		}
		seen := func(n, bad float64) promq.Sample {
			return seenAs(map[string]slotSeen{"b": of(n, bad), "a": of(baseline, baselineBad)})
		}
		e := &promq.Evidence{Window: 2 * time.Minute, Period: 10 * time.Minute, Recent: seen(recent, recentBad), Whole: seen(n, bad)}
		p := &v1alpha1.CanaryParameters{Slot: "b", Baseline: "a", MinSamples: int32(how)}
		ready := func(string) int { return int(how % 3) }
		verdict, told := weigh(c, p, e, ready)
		if verdict == "" || !slices.Contains([]string{"P", "F", "I", "N", "E", "S"}, string(verdict[:1])) {
			t.Errorf("There should be a verdict, got %q", verdict)
		}
		if (verdict == v1alpha1.VerdictPass) != (told.Message == "") {
			t.Errorf("What does not pass should be explained, got %s %q", verdict, told.Message)
		}
		if strings.Contains(told.Message, "NaN") || strings.Contains(told.Message, "Inf") {
			t.Errorf("A message should hold numbers, got %q", told.Message)
		}
		for _, v := range []*float64{told.Value, told.Lower, told.Upper, told.Baseline} {
			if v != nil && (math.IsNaN(*v) || math.IsInf(*v, 0)) {
				t.Errorf("A number should be one, got %+v", told)
			}
		}
		if v, l, u := told.Value, told.Lower, told.Upper; v != nil && l != nil && *l > *v*1.01+1e-9 || v != nil && u != nil && *u < *v*0.99-1e-9 {
			t.Errorf("Bounds should be around the value, got %g from %g to %g", *v, *l, *u)
		}
		again, toldAgain := weigh(c, p, e, ready)
		if diff := cmp.Diff(told, toldAgain); diff != "" || verdict != again {
			t.Errorf("The same evidence should give the same: -first, +second:\n%s", diff)
		}
		p.Checks = []v1alpha1.Check{c}
		reported := &v1alpha1.CanaryObservation{Epoch: 1, StartedAt: metav1.NewTime(time.Unix(1, 0)), Checks: []v1alpha1.CanaryCheck{{Name: "check", Verdicts: "PFINEPFINE"}}}
		verdict, _ = weigh(c, p, e, func(string) int { return 0 })
		reported = Canary(reported, p, e, func(string) int { return 0 }, time.Unix(2, 0))
		if got := reported.Checks[0].Verdicts; got != "FINEPFINE"+string(verdict[:1]) {
			t.Errorf("A letter should be appended, and ten be kept, got %q", got)
		}
		e.Failure = &outside.Failure{Reason: apis.ReasonUnreachable, Message: "nothing answers"}
		reported = Canary(reported, p, e, func(string) int { return 0 }, time.Unix(3, 0))
		if got := reported.Checks[0].Verdicts; !strings.HasSuffix(got, "E") || len(got) != 10 {
			t.Errorf("An outage should be an error of each check, got %q", got)
		}
	})
}

// TestHold shows that a verdict at the border of its evidence does not come and go.
func TestHold(t *testing.T) {
	c := v1alpha1.Check{Name: "success", Kind: v1alpha1.CheckSuccessRatio, Min: new(0.99)}
	verdict := func(requests, failures float64, told v1alpha1.Verdict) v1alpha1.Verdict {
		s := promq.Sample{Slots: map[string]*promq.Measures{"a": {Requests: promq.Reading{Value: requests}, Failures: promq.Reading{Value: failures}}}}
		return Judge(c, Evidence{Slot: "a", Recent: s, Window: 2 * time.Minute, Previous: told}).Is
	}
	for _, tc := range []struct {
		requests, failures float64
		told, want         v1alpha1.Verdict
	}{
		{267, 0, "", v1alpha1.VerdictInsufficient},
		{268, 0, "", v1alpha1.VerdictPass},
		{200, 0, v1alpha1.VerdictPass, v1alpha1.VerdictPass},
		{150, 0, v1alpha1.VerdictPass, v1alpha1.VerdictInsufficient},
		{200, 0, v1alpha1.VerdictInsufficient, v1alpha1.VerdictInsufficient},
		{200, 0, v1alpha1.VerdictFail, v1alpha1.VerdictInsufficient},
		{200, 20, v1alpha1.VerdictPass, v1alpha1.VerdictFail},
		{80, 2, v1alpha1.VerdictFail, v1alpha1.VerdictFail},
		{80, 2, v1alpha1.VerdictInsufficient, v1alpha1.VerdictInsufficient},
	} {
		if got := verdict(tc.requests, tc.failures, tc.told); got != tc.want {
			t.Errorf("%g of %g failed, and %q is told: want %s, got %s", tc.failures, tc.requests, tc.told, tc.want, got)
		}
	}
}
