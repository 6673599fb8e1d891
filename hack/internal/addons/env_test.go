// SPDX-License-Identifier: Apache-2.0

package addons

import (
	"context"
	"errors"
	"testing"
)

// TestEstablished waits for definitions whose conditions are null, which kubectl reports as an error, and for nothing else that fails.
func TestEstablished(t *testing.T) {
	null := errors.New("cannot run kubectl: exit status 1: error: <nil> is not array or slice and cannot be filtered")
	other := errors.New(`cannot run kubectl: exit status 1: Error from server (NotFound): customresourcedefinitions "things" not found`)
	for name, tc := range map[string]struct {
		reason  string
		answers []error
		want    error
	}{
		"AtOnce":    {"It is established.", []error{nil}, nil},
		"NoneYet":   {"The API server has not written a condition.", []error{null, null, nil}, nil},
		"NotFound":  {"Waiting makes it no better.", []error{other}, other},
		"ThenFails": {"Nor does it then.", []error{null, other}, other},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			err := established(t.Context(), func(context.Context, ...string) (string, error) {
				calls++
				return "", tc.answers[calls-1]
			}, []string{"customresourcedefinition.apiextensions.k8s.io/things"})
			if !errors.Is(err, tc.want) || calls != len(tc.answers) {
				t.Errorf("%s established: %v after %d calls, want %v after %d", tc.reason, err, calls, tc.want, len(tc.answers))
			}
		})
	}
}
