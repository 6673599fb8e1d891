// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/modeluri"
	"github.com/capstan-dev/capstan/function/algorithm/rollout"
	"github.com/capstan-dev/capstan/function/check"
)

func lifecycle(s v1alpha1.AlgorithmSpec) field.ErrorList {
	lc := s.Lifecycle
	if lc == nil {
		return nil
	}
	var errs field.ErrorList
	at, none := spec.Child("lifecycle"), field.OmitValueType{}
	deadline := lc.Deadline.Duration
	if lc.Soak.Duration > deadline {
		errs = append(errs, field.Invalid(at.Child("soak"), lc.Soak.Duration,
			fmt.Sprintf("is longer than deadline %s, by which a step must have enough evidence: raise deadline or lower soak", check.Duration(deadline))))
	}
	if s.Route == nil && lc.MirrorPercent != nil {
		errs = append(errs, field.Invalid(at.Child("mirrorPercent"), none, "needs spec.route: only a Gateway copies requests"))
	}
	if s.Route == nil && len(lc.Match) > 0 {
		errs = append(errs, field.Invalid(at.Child("match"), none, "needs spec.route: only a Gateway sees headers and cookies"))
	}
	for i, w := range lc.Freeze {
		if err := freeze(at.Child("freeze").Index(i), w); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// fewBegins is how many begins of a window freeze checks for an overlap with the next one.
const fewBegins = 16

func freeze(at *field.Path, w v1alpha1.FreezeWindow) *field.Error {
	if _, err := time.LoadLocation(w.TimeZone); err != nil {
		return field.Invalid(at.Child("timeZone"), w.TimeZone, "must be the name of a time zone, for instance Europe/Berlin")
	}
	schedule, _, err := rollout.ScheduleOf(w)
	if err != nil {
		return field.Invalid(at.Child("cron"), w.Cron,
			"must be minute, hour, day of the month, month and day of the week, for instance 0 17 * * 5")
	}
	begin := schedule.Next(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC))
	if begin.IsZero() {
		return field.Invalid(at.Child("cron"), w.Cron, "names a day that never comes")
	}
	for range fewBegins {
		next := schedule.Next(begin)
		if !next.IsZero() && next.Before(begin.Add(w.For.Duration)) {
			return field.Invalid(at.Child("for"), w.For.Duration, "is longer than the time until cron begins it again: shorten it")
		}
		begin = next
	}
	return nil
}

func experiment(s v1alpha1.AlgorithmSpec) field.ErrorList {
	if s.Experiment == "" {
		return nil
	}
	var errs field.ErrorList
	at := spec.Child("experiment")
	if s.Lifecycle == nil {
		errs = append(errs, field.Invalid(at, s.Experiment, "needs spec.lifecycle, which remembers the arm of each client: set it, for instance to {}"))
	}
	if s.Route == nil {
		errs = append(errs, field.Invalid(at, s.Experiment, "needs spec.route: only a Gateway keeps the arms apart"))
	}
	return errs
}

// Experiment returns what keeps an Experiment that its schema accepts from running on the Algorithm of a name. Errors name fields of
// the Experiment.
func Experiment(name string, s v1alpha1.AlgorithmSpec, e v1alpha1.ExperimentSpec) field.ErrorList {
	var errs field.ErrorList
	if e.Algorithm != name {
		errs = append(errs, field.Invalid(spec.Child("algorithm"), e.Algorithm, fmt.Sprintf(
			"is another Algorithm: name an Experiment of Algorithm %q in spec.experiment", name)))
	}
	switch m, version, at := s.Model, e.ArmB.ModelVersion, spec.Child("armB", "modelVersion"); {
	case version == "":
	case m == nil || modeluri.Parse(m.URI).Scheme != modeluri.Registry:
		errs = append(errs, field.Invalid(at, version, "needs a model of the registry: spec.model.uri: models:/… of the Algorithm"))
	case m.Digest != "":
		errs = append(errs, field.Invalid(at, version,
			"is another model than spec.model.digest and size of the Algorithm are of: remove them, and let the registry report the digest"))
	}
	return errs
}
