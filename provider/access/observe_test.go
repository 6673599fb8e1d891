// SPDX-License-Identifier: Apache-2.0

package access

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/access/v1alpha1"
)

func TestPoll(t *testing.T) {
	ready := func(ago time.Duration) xpv2.Condition {
		c := xpv2.Available()
		c.LastTransitionTime = metav1.NewTime(time.Now().Add(-ago))
		return c
	}
	for name, tc := range map[string]struct {
		reason    string
		condition xpv2.Condition
		missing   []string
		min, max  time.Duration
	}{
		"Complete": {"Nothing is missing: as often as all others, give or take a tenth.", ready(0), nil, 9 * time.Minute, 11 * time.Minute},
		"Young":    {"A Database waits for the extension to be Ready.", ready(time.Second), []string{"vector"}, atOnce, atOnce},
		"Old":      {"An extension that cannot be made is no reason to look all the time.", ready(time.Hour), []string{"vector"}, soon, soon},
		"Unready":  {"Something else is not made either.", xpv2.Creating(), []string{"vector"}, atOnce, soon},
	} {
		t.Run(name, func(t *testing.T) {
			cr := &v1alpha1.Access{}
			cr.SetConditions(tc.condition)
			cr.Status.AtProvider.Databases = []v1alpha1.ObservedDatabase{{Name: "orders", Missing: tc.missing}}
			if got := poll(cr, 10*time.Minute); got < tc.min || got > tc.max {
				t.Errorf("\n%s\npoll(...): want %s to %s, got %s", tc.reason, tc.min, tc.max, got)
			}
		})
	}
}
