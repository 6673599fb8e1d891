// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"errors"
	"strings"
	"testing"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

// tenant is namespace shop, on shared ground or not, with or without adoption.
func tenant(shared, adoption bool) outside.Tenant {
	return outside.Tenant{
		Cluster: "c1", Namespace: "shop", Config: `ClusterProviderConfig "mlflow"`, Shared: shared, Adoption: adoption,
	}
}

func reasonOf(err error) xpv2.ConditionReason {
	f := (*outside.Failure)(nil)
	if !errors.As(err, &f) {
		return ""
	}
	return f.Reason
}

// TestOwnership is the whole decision: whose an entry is, who may manage it, and who may see a model and add to it.
func TestOwnership(t *testing.T) {
	const no, forbidden = v1alpha1.ReasonNameTaken, v1alpha1.ReasonForbidden
	cases := map[string]struct {
		reason string
		tag    string
		want   Standing

		// manage tells for (no consent, platform's only, own only, both) what becomes of it: "", "adopt" or a reason.
		manage [4]string

		// enter tells the same for shared ground without and with adoption.
		enter [2]xpv2.ConditionReason
	}{
		"Ours":       {reason: "Our own.", tag: "c1/shop/reco", want: Ours},
		"Sibling":    {reason: "Of the same namespace.", tag: "c1/shop/other", want: Siblings, manage: [4]string{string(no), string(no), string(no), string(no)}},
		"Longer":     {reason: "A longer name is another.", tag: "c1/shop/reco2", want: Siblings, manage: [4]string{string(no), string(no), string(no), string(no)}},
		"Unowned":    {reason: "Nobody's.", tag: "", want: Unowned, manage: [4]string{string(no), string(no), string(no), "adopt"}, enter: [2]xpv2.ConditionReason{forbidden, ""}},
		"Foreign":    {reason: "Another namespace's.", tag: "c1/pay/reco", want: Foreign, manage: [4]string{string(no), string(no), string(no), string(no)}, enter: [2]xpv2.ConditionReason{forbidden, forbidden}},
		"Prefix":     {reason: "A namespace whose name begins like ours.", tag: "c1/shopping/reco", want: Foreign, manage: [4]string{string(no), string(no), string(no), string(no)}, enter: [2]xpv2.ConditionReason{forbidden, forbidden}},
		"Abroad":     {reason: "Another cluster's.", tag: "c2/shop/reco", want: Foreign, manage: [4]string{string(no), string(no), string(no), string(no)}, enter: [2]xpv2.ConditionReason{forbidden, forbidden}},
		"Namespace":  {reason: "A namespace is no owner.", tag: "c1/shop/", want: Foreign, manage: [4]string{string(no), string(no), string(no), string(no)}, enter: [2]xpv2.ConditionReason{forbidden, forbidden}},
		"Nonsense":   {reason: "What we do not understand is somebody's.", tag: "reco", want: Foreign, manage: [4]string{string(no), string(no), string(no), string(no)}, enter: [2]xpv2.ConditionReason{forbidden, forbidden}},
		"WhiteSpace": {reason: "So is nothing but a space.", tag: " ", want: Foreign, manage: [4]string{string(no), string(no), string(no), string(no)}, enter: [2]xpv2.ConditionReason{forbidden, forbidden}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Stand(tenant(true, true), "reco", tc.tag); got != tc.want {
				t.Errorf("\n%s\nStand(...): want %s, got %s", tc.reason, tc.want, got)
			}
			for i, want := range tc.manage {
				for _, shared := range []bool{true, false} {
					c := Claim{Tenant: tenant(shared, i&1 != 0), Name: "reco", What: `model "x"`, Tag: tc.tag, Adopt: i&2 != 0}
					adopt, err := c.Manage()
					got := string(reasonOf(err))
					if adopt {
						got += "adopt"
					}
					if got != want {
						t.Errorf("\n%s\nManage() of %+v: want %q, got %q", tc.reason, c, want, got)
					}
					if err != nil && tc.want == Foreign && tc.tag != " " && strings.Contains(err.Error(), tc.tag) {
						t.Errorf("\n%s\nManage(): must not tell the owner, got %q", tc.reason, err)
					}
				}
			}
			for i, want := range tc.enter {
				if got := reasonOf(Enter(tenant(true, i == 1), "x", tc.tag)); got != want {
					t.Errorf("\n%s\nEnter(...) with adoption %t: want %q, got %q", tc.reason, i == 1, want, got)
				}
			}
			if err := Enter(tenant(false, true), "x", tc.tag); err != nil {
				t.Errorf("\n%s\nEnter(...) with a config of its own: %v", tc.reason, err)
			}
		})
	}
}
