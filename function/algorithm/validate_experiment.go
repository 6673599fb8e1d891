// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
)

var shapeModelVersion = regexp.MustCompile(`^[1-9][0-9]{0,9}$`)

func checkExperiment(s *state) []check.Problem {
	e := s.spec.Experiment
	if e == nil {
		return nil
	}

	var ps []check.Problem

	if s.spec.Lifecycle == nil {
		ps = append(ps, check.Problem{Reason: v1alpha1.ReasonInvalidSpec, Message: "spec.experiment: needs spec.lifecycle, which remembers who reaches what: set it, {} will do"})
	}

	if s.spec.Route == nil {
		ps = append(ps, check.Problem{Reason: v1alpha1.ReasonInvalidSpec, Message: "spec.experiment: needs spec.route: only a Gateway keeps the arms apart"})
	}

	if errs := validation.IsDNS1123Label(e.ID); len(errs) > 0 {
		ps = append(ps, check.Invalid("spec.experiment.id", e.ID, "must be at most 63 lower case letters, digits and '-', with a letter or digit at both ends"))
	}

	return slices.Concat(ps,
		checkArm(s),
		check.Between("spec.experiment.assignment.percent", e.Assignment.Percent, 1, 50),
		checkCallers("spec.experiment.assignment.match", e.Assignment.Match),
		checkExperimentMetric(e.Metric),
		checkGuardrails(e.Guardrails),
		checkStop(e.Stop),
	)
}

func checkArm(s *state) []check.Problem {
	arm := s.spec.Experiment.ArmB
	ps := check.Shaped("spec.experiment.armB.modelVersion", arm.ModelVersion, shapeModelVersion, "must be the number of a version, for instance 12")

	if arm.Image == "" && len(arm.Env) == 0 && arm.ModelVersion == "" {
		ps = append(ps, check.Problem{Reason: v1alpha1.ReasonInvalidSpec, Message: "spec.experiment.armB: has none of image, env and modelVersion: set one, or both arms are the same"})
	}

	if strings.ContainsFunc(arm.Image, func(r rune) bool { return r <= ' ' }) {
		ps = append(ps, check.Invalid("spec.experiment.armB.image", arm.Image, "must name an image, without white space"))
	}

	seen := map[string]bool{}

	for i, v := range arm.Env {
		field := fmt.Sprintf("spec.experiment.armB.env[%d]", i)

		if errs := validation.IsEnvVarName(v.Name); len(errs) > 0 {
			ps = append(ps, check.Invalid(field+".name", v.Name, check.Because(errs)))
		}

		if seen[v.Name] {
			ps = append(ps, check.Invalid(field+".name", v.Name, "is there twice: remove one"))
		}

		seen[v.Name] = true

		if c := s.spec.Config; c != nil {
			if _, taken := c.Env[v.Name]; taken {
				ps = append(ps, check.Invalid(field+".name", v.Name, "is in spec.config.env as well: move it to spec.env"))
			}
		}

		if v.ValueFrom != nil {
			ps = append(ps, checkSource(field+".valueFrom", v.Value, v.ValueFrom)...)
		}
	}

	switch m := s.spec.Model; {
	case arm.ModelVersion == "":
	case m == nil || m.From != v1alpha1.ModelFromRegistry || m.Registry == nil:
		ps = append(ps, check.Invalid("spec.experiment.armB.modelVersion", arm.ModelVersion, "needs a model of the registry: spec.model.from: registry"))
	case m.Digest != "" || m.Size != nil:
		ps = append(ps, check.Invalid("spec.experiment.armB.modelVersion", arm.ModelVersion,
			"is another model than spec.model.digest and size are of: remove them, and let the registry tell the digest"))
	}

	return ps
}

func checkExperimentMetric(m v1alpha1.ExperimentMetric) []check.Problem {
	const at = "spec.experiment.metric."

	ps := slices.Concat(
		check.Among(at+"kind", m.Kind, v1alpha1.ExperimentSuccessRatio, v1alpha1.ExperimentLatency, v1alpha1.ExperimentShare),
		check.Among(at+"direction", m.Direction, v1alpha1.DirectionHigher, v1alpha1.DirectionLower),
		tooLong(at+"query", m.Query),
		tooLong(at+"of", m.Of),
	)

	own := m.Kind == v1alpha1.ExperimentShare

	switch {
	case own && m.Query == "":
		ps = append(ps, check.Invalid(at+"query", m.Query, "must be a PromQL expression: the number of events in $window"))
	case own:
		ps = append(ps, windowed(at+"query", m.Query)...)
	case m.Query != "":
		ps = append(ps, check.Invalid(at+"query", m.Query, "is of kind Share only: remove it"))
	}

	switch {
	case m.Of == "":
	case own:
		ps = append(ps, windowed(at+"of", m.Of)...)
	default:
		ps = append(ps, check.Invalid(at+"of", m.Of, "is of kind Share only: remove it"))
	}

	if !own && m.Direction == v1alpha1.DirectionLower {
		ps = append(ps, check.Invalid(at+"direction", string(m.Direction), "of requests that succeed, or are answered in time, more is always better"))
	}

	switch {
	case m.Kind == v1alpha1.ExperimentLatency && m.WithinMs == nil:
		ps = append(ps, check.Problem{Reason: v1alpha1.ReasonInvalidSpec, Message: at + "withinMs: is not set: set the time within which a request must be answered"})
	case m.WithinMs != nil && m.Kind != v1alpha1.ExperimentLatency:
		ps = append(ps, check.Invalid(at+"withinMs", *m.WithinMs, "is of kind Latency only: remove it"))
	case m.WithinMs != nil:
		ps = append(ps, check.Between(at+"withinMs", *m.WithinMs, 1, 3600000)...)
	}

	if d := *m.MinEffect; d < 0.0001 || d > 0.5 {
		ps = append(ps, check.Invalid(at+"minEffect", d, "must be from 0.0001 to 0.5: it is a difference of two shares"))
	}

	return ps
}

// windowed tells whether a query counts the same time however long an experiment has
// lasted.
func windowed(field, query string) []check.Problem {
	if strings.Contains(query, "$window") {
		return nil
	}

	return []check.Problem{check.Invalid(field, query, "must contain $window, which stands for the time since the experiment began")}
}

func checkGuardrails(g *v1alpha1.ExperimentGuardrails) []check.Problem {
	ps := checkLatency("spec.experiment.guardrails.latency", g.Latency)

	if t := *g.SuccessThreshold; t < 0 || t >= 1 {
		ps = append(ps, check.Invalid("spec.experiment.guardrails.successThreshold", t,
			"must be from 0 to less than 1: that nothing ever fails cannot be told from any number of requests"))
	}

	return ps
}

func checkStop(stop *v1alpha1.ExperimentStop) []check.Problem {
	ps := slices.Concat(
		lasting("spec.experiment.stop.duration", stop.Duration, time.Minute, 2*week),
		check.Between("spec.experiment.stop.minSamples", *stop.MinSamples, 100, 100_000_000),
	)

	if c := *stop.Confidence; c < 80 || c > 99.99 {
		ps = append(ps, check.Invalid("spec.experiment.stop.confidence", c, "must be from 80 to 99.99"))
	}

	return ps
}
