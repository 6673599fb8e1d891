// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/json"
	"testing"
)

func TestNormalise(t *testing.T) {
	const one = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":["*"]},` +
		`"Action":["s3:getobject","s3:putobject"],"Resource":["arn:aws:s3:::b/*"],"Condition":{"Bool":{"aws:SecureTransport":["true"]}}}]}`
	cases := map[string]struct {
		reason string
		a, b   string
		same   bool
	}{
		"Same": {reason: "The same text.", a: one, b: one, same: true},
		"Spelling": {
			reason: "One string for a list of one, other orders, other cases, and a boolean.", a: one, same: true,
			b: `{
				"Statement": {
					"Sid": "",
					"Condition": {"Bool": {"aws:SecureTransport": true}},
					"Resource": "arn:aws:s3:::b/*", "Action": ["s3:PutObject", "s3:GetObject", "s3:GetObject"],
					"Principal": "*", "Effect": "Allow"
				},
				"Version": "2012-10-17", "Id": ""
			}`,
		},
		"Account": {
			reason: "An account is its root user.", same: true,
			a: `{"Statement":[{"Principal":{"AWS":"111122223333"}}]}`,
			b: `{"Statement":[{"Principal":{"AWS":["arn:aws:iam::111122223333:root"]}}],"Version":"2008-10-17"}`,
		},
		"Resource":  {reason: "The case of resources counts.", a: `{"Statement":[{"Resource":"a"}]}`, b: `{"Statement":[{"Resource":"A"}]}`},
		"Effect":    {reason: "The effect counts.", a: `{"Statement":[{"Effect":"Allow"}]}`, b: `{"Statement":[{"Effect":"Deny"}]}`},
		"Order":     {reason: "The order of statements is kept.", a: `{"Statement":[{"Sid":"a"},{"Sid":"b"}]}`, b: `{"Statement":[{"Sid":"b"},{"Sid":"a"}]}`},
		"Version":   {reason: "The version counts.", a: `{"Version":"2012-10-17","Statement":[]}`, b: `{"Statement":[]}`},
		"Principal": {reason: "A service is no user.", a: `{"Statement":[{"Principal":{"AWS":"x"}}]}`, b: `{"Statement":[{"Principal":{"Service":"x"}}]}`},
		"Not":       {reason: "Not is the contrary.", a: `{"Statement":[{"Action":"s3:*"}]}`, b: `{"Statement":[{"NotAction":"s3:*"}]}`},
		"Number":    {reason: "Large numbers stay as they are.", a: `{"Statement":[{"Condition":{"N":{"k":9007199254740993}}}]}`, b: `{"Statement":[{"Condition":{"N":{"k":9007199254740992}}}]}`},
		"Ampersand": {reason: "An ampersand is one.", a: `{"Statement":[{"Resource":"a&b"}]}`, b: `{"Statement":[{"Resource":"a\u0026b"}]}`, same: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a, err := Normalise(tc.a)
			if err != nil {
				t.Fatal(err)
			}
			b, err := Normalise(tc.b)
			if err != nil {
				t.Fatal(err)
			}
			if (a == b) != tc.same {
				t.Errorf("%s\nsame: want %t\n%s\n%s", tc.reason, tc.same, a, b)
			}
		})
	}
}

func TestNormaliseRefuses(t *testing.T) {
	cases := map[string]struct {
		text, want string
	}{
		"Empty":    {text: "", want: "it is not complete JSON"},
		"Text":     {text: "hunter2", want: "it is not JSON from byte 1 on"},
		"Half":     {text: `{"Statement":[`, want: "it is not complete JSON"},
		"List":     {text: `[]`, want: "it is not a JSON object"},
		"Null":     {text: `null`, want: "it is null and not a JSON object"},
		"Trailing": {text: `{} {}`, want: "there is something after the end of the JSON object"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := Normalise(tc.text); err == nil || err.Error() != tc.want {
				t.Errorf("Normalise(%q): want %q, got %v", tc.text, tc.want, err)
			}
		})
	}
}

// FuzzNormalise shows that what is normal stays as it is, that what is sent means what was written, and that nothing makes it
// panic.
func FuzzNormalise(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"Statement":{"Principal":"*","Action":"s3:GetObject","Condition":{"Bool":{"a":true}}}}`,
		`{"Statement":[{"Principal":{"AWS":["111122223333",1,null]},"Action":[[]],"Sid":""}],"Version":"","Id":""}`,
		`{"Statement":"x"}`, `{"Statement":[1,null,{"Action":null,"Resource":{}}]}`, `{"Version":1,"Statement":{"Condition":[1]}}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		once, err := Normalise(text)
		if err != nil {
			return
		}
		if !json.Valid([]byte(once)) {
			t.Fatalf("%q became %q, which is no JSON", text, once)
		}
		twice, err := Normalise(once)
		if err != nil || once != twice {
			t.Fatalf("%q became %q and then %q (%v)", text, once, twice, err)
		}
		sent, err := Spelled(text)
		if err != nil {
			t.Fatal(err)
		}
		if meaning, err := Normalise(sent); err != nil || meaning != once {
			t.Fatalf("%q is sent as %q, which means %q and not %q (%v)", text, sent, meaning, once, err)
		}
	})
}
