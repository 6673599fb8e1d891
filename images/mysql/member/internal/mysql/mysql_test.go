// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLiteral(t *testing.T) {
	for value, want := range map[string]string{
		"16M": "16777216", "1g": "1073741824", "10": "10", "-1": "-1", "0.5": "0.5", "ON": "'ON'", "READ-COMMITTED": "'READ-COMMITTED'",
		"+00:00": "'+00:00'", `it's \ quoted`: `'it''s \\ quoted'`, "": "''", "9999999999999999T": "'9999999999999999T'", "1; DROP": "'1; DROP'",
	} {
		if got := literal(value); got != want {
			t.Errorf("literal(%q) = %s, want %s", value, got, want)
		}
	}
}

func TestWords(t *testing.T) {
	cases := map[string][]string{
		"GRANT SELECT, INSERT ON *.* TO `capstan`@`%` WITH GRANT OPTION": {"GRANT SELECT ON *.*", "GRANT INSERT ON *.*"},
		"GRANT A_ADMIN,B_ADMIN ON *.* TO `capstan`@`%`":                  {"GRANT A_ADMIN ON *.*", "GRANT B_ADMIN ON *.*"},
		"REVOKE DROP ON `mysql`.* FROM `capstan`@`%`":                    {"REVOKE DROP ON mysql.*"},
		"GRANT `a role`@`%` TO `capstan`@`%`":                            nil,
	}
	for statement, want := range cases {
		if diff := cmp.Diff(want, words(statement)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", statement, diff)
		}
	}
}
