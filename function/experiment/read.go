// SPDX-License-Identifier: Apache-2.0

// Package experiment plans one Experiment. It composes nothing: the planner of the Algorithm runs the experiment, and this one
// reports in the status of the Experiment what comes of it. It is pure, as every planner is.
package experiment

import (
	"github.com/capstan-dev/capstan/apis"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/definition"
)

// theDefinition of Experiments.
var theDefinition = definition.Once(apis.Experiment)

// Read the spec of an Experiment, with the defaults of its schema, and report the problems of it.
func Read(o map[string]any) (v1alpha1.ExperimentSpec, []check.Problem) {
	spec, problems, _ := definition.Decode[v1alpha1.ExperimentSpec](
		theDefinition(), compose.Text(o, "metadata", "name"), compose.Map(o, "spec"), "guardrails", "stop")
	return spec, problems
}
