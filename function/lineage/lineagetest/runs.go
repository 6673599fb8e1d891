// SPDX-License-Identifier: Apache-2.0

// Package lineagetest reads what planners ask of a Lineage.
package lineagetest

import (
	"strings"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/observed"
)

// Runs that a Lineage reports: each with its name, state, times of the day, and outputs of its own.
func Runs(o compose.Object) []string {
	p, _ := observed.Parameters[observev1alpha1.LineageParameters](o)
	all := make([]string, 0, len(p.Runs))
	for _, r := range p.Runs {
		one := r.Name + " " + string(r.State) + " " + r.StartedAt.UTC().Format("15:04")
		if r.EndedAt != nil {
			one += "-" + r.EndedAt.UTC().Format("15:04")
		}
		words := append(make([]string, 0, 1+2*len(r.Outputs)), one)
		for _, out := range r.Outputs {
			words = append(words, out.Namespace, out.Name)
		}
		all = append(all, strings.Join(words, " "))
	}
	return all
}
