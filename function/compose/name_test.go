// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

func TestName(t *testing.T) {
	long := strings.Repeat("a", 63)
	cases := map[string]struct {
		reason   string
		base     string
		suffixes []string
		want     string
	}{
		"Short":        {"a name that fits is not touched", "reco", []string{"a"}, "reco-a"},
		"NoSuffix":     {"a base alone may have all 63 characters", long, nil, long},
		"TwoSuffixes":  {"suffixes are joined", "reco", []string{"config", "0123456789"}, "reco-config-0123456789"},
		"JustFits":     {"63 characters are not cut", long[:61], []string{"a"}, long[:61] + "-a"},
		"Cut":          {"the suffix stays readable", long, []string{"a"}, long[:50] + "-" + Hash([]byte(long+"-a")) + "-a"},
		"CutAtDash":    {"no dash is left at the cut", long[:49] + "-" + long, []string{"a"}, long[:49] + "-" + Hash([]byte(long[:49]+"-"+long+"-a")) + "-a"},
		"SuffixTooBig": {"a suffix that leaves no room is cut as well", "reco", []string{long}, "reco-" + long[:47] + "-" + Hash([]byte("reco-"+long))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Name(tc.base, tc.suffixes...); got != tc.want {
				t.Errorf("%s\nName(%q, %q): got %q, want %q", tc.reason, tc.base, tc.suffixes, got, tc.want)
			}
		})
	}
}

func FuzzName(f *testing.F) {
	f.Add(strings.Repeat("a", 62), strings.Repeat("a", 61)+"b", "a")
	f.Add("reco", "reco-a", "a")
	f.Fuzz(func(t *testing.T, a, b, suffix string) {
		for _, s := range []string{a, b, suffix} {
			if len(validation.IsDNS1035Label(s)) > 0 {
				return
			}
		}
		x, y := Name(a, suffix), Name(b, suffix)
		for _, n := range []string{x, y} {
			if errs := validation.IsDNS1035Label(n); len(errs) > 0 {
				t.Errorf("%q is not a name: %v", n, errs)
			}
		}
		if a != b && x == y {
			t.Errorf("%q and %q both become %q", a, b, x)
		}
	})
}
