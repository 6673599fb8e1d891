// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/capstan-dev/capstan/function/compose"
)

// withParts is a Resource with an object, and with the parts that nothing reads.
func withParts(tb testing.TB, m map[string]any) *fnv1.Resource {
	tb.Helper()
	s, err := structpb.NewStruct(m)
	if err != nil {
		tb.Fatal(err)
	}
	return &fnv1.Resource{Resource: s, ConnectionDetails: map[string][]byte{"a": {0xff}}, Ready: fnv1.Ready_READY_TRUE}
}

// example of a request with something in every part.
func example(tb testing.TB) *fnv1.RunFunctionRequest {
	tb.Helper()
	deployment := withParts(tb, map[string]any{
		"kind": "Deployment",
		"metadata": map[string]any{
			"name": "reco", "labels": map[string]any{"": "empty"},
			"managedFields": []any{map[string]any{"manager": "m", "fieldsV1": map[string]any{"f:spec": map[string]any{}}}},
		},
		"spec":   map[string]any{"replicas": 3, "list": []any{nil, true, false, 1.5, "é", []any{}, map[string]any{}}},
		"status": map[string]any{"text": strings.Repeat("x", 300), "nothing": nil},
	})
	return &fnv1.RunFunctionRequest{
		Meta:     &fnv1.RequestMeta{Tag: "tag", Capabilities: []fnv1.Capability{fnv1.Capability_CAPABILITY_CONDITIONS}},
		Observed: &fnv1.State{Composite: deployment, Resources: map[string]*fnv1.Resource{"a": deployment, "b": nil, "c": {}}},
		Desired:  &fnv1.State{Resources: map[string]*fnv1.Resource{"earlier": withParts(tb, nil)}},
		Input:    deployment.GetResource(),
		Context:  deployment.GetResource(),
		Credentials: map[string]*fnv1.Credentials{"secret": {Source: &fnv1.Credentials_CredentialData{
			CredentialData: &fnv1.CredentialData{Data: map[string][]byte{"a": []byte("b")}},
		}}},
		RequiredResources: map[string]*fnv1.Resources{"none": nil, "two": {Items: []*fnv1.Resource{deployment, {}}}},
		RequiredSchemas:   map[string]*fnv1.Schema{"none": {}, "empty": {OpenapiV3: &structpb.Struct{}}, "some": {OpenapiV3: deployment.GetResource()}},
	}
}

func wire(tb testing.TB, m proto.Message) []byte {
	tb.Helper()
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		tb.Fatal(err)
	}
	return raw
}

// part of a message: a field with bytes.
func part(n protowire.Number, content ...[]byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, n, protowire.BytesType), slices.Concat(content...))
}

// text is a Struct with one entry.
func text(key string, values ...[]byte) []byte {
	return part(structFields, part(entryKey, []byte(key)), part(entryValue, values...))
}

// nested Structs in a Struct.
func nested(depth int) []byte {
	s := text("a", part(valueString, []byte("b")))
	for range depth {
		s = text("a", part(valueStruct, s))
	}
	return s
}

// decodedAll objects.
func decodedAll(os []compose.Object) []map[string]any {
	all := make([]map[string]any, 0, len(os))
	for _, o := range os {
		all = append(all, o.Map())
	}
	return all
}

// compare a request with what the stock codec makes of the same bytes.
func compare(t *testing.T, got *Request, want *fnv1.RunFunctionRequest) {
	t.Helper()
	object := func(what string, got *Object, want *structpb.Struct) {
		t.Helper()
		if got == nil || want == nil {
			if got != nil || want != nil {
				t.Errorf("%s: one is nil: got %v, want %v", what, got, want)
			}
			return
		}
		whole := want.AsMap()
		for _, path := range [][]string{{"kind"}, {"metadata", "name"}, {"status"}, {"spec", "replicas"}, {"a", "a"}, {""}} {
			if diff := cmp.Diff(compose.Field(whole, path...), (&Object{raw: got.raw}).Field(path...)); diff != "" {
				t.Errorf("%s: field %v: -want, +got:\n%s", what, path, diff)
			}
			v := structpb.NewStructValue(want)
			for _, k := range path {
				v = v.GetStructValue().GetFields()[k]
			}
			if diff := cmp.Diff(v.GetStringValue(), got.Text(path...)); diff != "" {
				t.Errorf("%s: text %v: -want, +got:\n%s", what, path, diff)
			}
		}
		for _, path := range [][]string{nil, {"metadata"}, {"spec"}, {"a", "a"}} {
			want, below := map[string]map[string]any{}, map[string]map[string]any{}
			for k, v := range compose.Map(whole, path...) {
				want[k], _ = v.(map[string]any)
			}
			for _, e := range got.Below(path...) {
				below[e.Key] = mapOf(e.Value.(*Object).raw, "")
			}
			if diff := cmp.Diff(want, below, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: below %v: -want, +got:\n%s", what, path, diff)
			}
		}
		var managed []map[string]any
		for _, v := range compose.List(whole, "metadata", "managedFields") {
			entry, _ := v.(map[string]any)
			managed = append(managed, maps.Clone(entry))
		}
		for i, entry := range got.Managed() {
			if diff := cmp.Diff(managed[i]["manager"], (&Object{raw: entry.(*Object).raw}).Field("manager")); diff != "" {
				t.Errorf("%s: manager %d: -want, +got:\n%s", what, i, diff)
			}
		}
		if diff := cmp.Diff(managed, decodedAll(got.Managed()), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: managed fields: -want, +got:\n%s", what, diff)
		}
		if m, ok := whole["metadata"].(map[string]any); ok {
			delete(m, "managedFields")
		}
		if diff := cmp.Diff(whole, got.Map()); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", what, diff)
		}
		if diff := cmp.Diff(whole["metadata"], got.Field("metadata")); diff != "" {
			t.Errorf("%s: metadata: -want, +got:\n%s", what, diff)
		}
	}
	ours := func(rs map[string]*fnv1.Resource, name string) *structpb.Struct {
		if s := rs[name].GetResource(); s != nil {
			return s
		}
		return &structpb.Struct{} // Of one that is empty there is an empty object.
	}
	object("XR", got.XR, want.GetObserved().GetComposite().GetResource())
	object("input", got.Input, want.GetInput())
	object("context", got.Context, want.GetContext())
	rs := want.GetObserved().GetResources()
	if diff := cmp.Diff(slices.Sorted(maps.Keys(rs)), slices.Sorted(maps.Keys(got.Observed))); diff != "" {
		t.Errorf("observed: -want, +got:\n%s", diff)
	}
	for name, o := range got.Observed {
		object(name, o.(*Object), ours(rs, name))
	}
	found, wanted := map[string]int{}, map[string]int{}
	for name, os := range got.Required {
		found[name] = len(os)
	}
	for name, os := range want.GetRequiredResources() {
		wanted[name] = len(os.GetItems())
		for i, o := range os.GetItems() {
			object(name, got.Required[name][i], ours(map[string]*fnv1.Resource{"": o}, ""))
		}
	}
	if diff := cmp.Diff(wanted, found); diff != "" {
		t.Errorf("required: -want, +got:\n%s", diff)
	}
	served := map[string]bool{}
	for name, s := range want.GetRequiredSchemas() {
		served[name] = len(s.GetOpenapiV3().GetFields()) > 0
	}
	if diff := cmp.Diff(served, got.Served); diff != "" {
		t.Errorf("schemas: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff([]any{want.GetMeta(), want.GetDesired()}, []any{got.Meta, got.Desired}, protocmp.Transform()); diff != "" {
		t.Errorf("what is decoded whole: -want, +got:\n%s", diff)
	}
}

// TestParse reads requests that an encoder would write, and those that it would not write so. Both say what the stock codec says.
func TestParse(t *testing.T) {
	whole := wire(t, example(t))
	xr := func(fields ...[]byte) []byte {
		return part(requestObserved, part(stateComposite, part(resourceResource, fields...)))
	}
	str := part(valueString, []byte("x"))
	cases := map[string]struct {
		reason string
		wire   []byte
		// odd requests are written again.
		odd bool
	}{
		"Empty":     {reason: "An empty request should be one.", wire: nil},
		"Whole":     {reason: "Every part should be found.", wire: whole},
		"Unknown":   {reason: "Fields of a later protocol should be passed over.", wire: slices.Concat(whole, part(99, []byte("x")), protowire.AppendVarint(protowire.AppendTag(nil, 98, protowire.VarintType), 7))},
		"Fixed32":   {reason: "Also one that is a number of four bytes.", wire: slices.Concat(whole, protowire.AppendFixed32(protowire.AppendTag(nil, 97, protowire.Fixed32Type), 7))},
		"SameKey":   {reason: "Of two entries of one key the later should count.", wire: xr(text("kind", str), text("kind", part(valueString, []byte("y"))))},
		"NoKey":     {reason: "An entry without key should have the empty one.", wire: xr(part(structFields, part(entryValue, str)))},
		"NoValue":   {reason: "An entry without value should be null.", wire: xr(part(structFields, part(entryKey, []byte("kind"))))},
		"LongSize":  {reason: "A size may have more bytes than it needs.", wire: []byte{0x12, 0x80, 0x00}},
		"NotANaN":   {reason: "What is no number in JSON should be text.", wire: xr(text("kind", protowire.AppendFixed64(protowire.AppendTag(nil, valueNumber, protowire.Fixed64Type), 0x7ff8000000000001)))},
		"Split":     {reason: "Parts of a message should be put together.", wire: slices.Concat(xr(text("kind", str)), xr(text("status", str))), odd: true},
		"SplitXR":   {reason: "Also those of a composite resource.", wire: part(requestObserved, part(stateComposite, part(resourceResource, text("kind", str))), part(stateComposite, part(resourceResource, text("status", str)))), odd: true},
		"TwoKinds":  {reason: "Of two kinds of a value the later should count.", wire: xr(text("kind", str, part(valueStruct, text("a", str)))), odd: true},
		"TwoValues": {reason: "Parts of a value should be put together.", wire: xr(part(structFields, part(entryKey, []byte("kind")), part(entryValue, part(valueStruct, text("a", str))), part(entryValue, part(valueStruct, text("b", str))))), odd: true},
		"WrongType": {reason: "A value of the wrong wire type should be nothing.", wire: xr(text("kind", protowire.AppendVarint(protowire.AppendTag(nil, valueString, protowire.VarintType), 7))), odd: true},
		"Deep":      {reason: "What is very deep should be read nevertheless.", wire: xr(nested(maxDepth + 1)), odd: true},
		"Group":     {reason: "A group of an unknown field should be passed over.", wire: slices.Concat(whole, protowire.AppendTag(nil, 90, protowire.StartGroupType), protowire.AppendTag(nil, 90, protowire.EndGroupType)), odd: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := &fnv1.RunFunctionRequest{}
			if err := proto.Unmarshal(tc.wire, want); err != nil {
				t.Fatalf("%s\nThe stock codec cannot read the example: %v", tc.reason, err)
			}
			if odd := !(&Request{}).index(string(tc.wire), true); odd != tc.odd {
				t.Errorf("%s\nodd: want %t, got %t", tc.reason, tc.odd, odd)
			}
			got, err := parse(string(tc.wire))
			if err != nil {
				t.Fatalf("%s\nparse(...): unexpected error: %v", tc.reason, err)
			}
			if tc.odd {
				want = known(t, want)
			}
			compare(t, got, want)
		})
	}
}

// known is a request without what nobody knows.
func known(tb testing.TB, req *fnv1.RunFunctionRequest) *fnv1.RunFunctionRequest {
	tb.Helper()
	out := &fnv1.RunFunctionRequest{}
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(wire(tb, req), out); err != nil {
		tb.Fatal(err)
	}
	return out
}

// TestRefused are bytes that say nothing, or too much.
func TestRefused(t *testing.T) {
	xr := func(fields ...[]byte) []byte {
		return part(requestObserved, part(stateComposite, part(resourceResource, fields...)))
	}
	for name, raw := range map[string][]byte{
		"NoMessage": {0xff, 0xff, 0xff},
		"Truncated": wire(t, example(t))[:200],
		"NoUTF8":    xr(text("kind", part(valueString, []byte{0xff}))),
		"KeyNoUTF8": xr(text("\xff", part(valueString, []byte("a")))),
		"TooDeep":   xr(nested(4_000)),
		"Size":      {0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01},
		"Tag":       {0x02, 0x00},
	} {
		if _, err := parse(string(raw)); err == nil || !strings.HasPrefix(err.Error(), "cannot decode the request") {
			t.Errorf("%s should be refused, got %v", name, err)
		}
	}
}

// TestBuffers of a request may be used again as soon as it is received.
func TestBuffers(t *testing.T) {
	want := example(t)
	raw := wire(t, want)
	middle := len(raw) / 2
	head, tail := bytes.Clone(raw[:middle]), bytes.Clone(raw[middle:])
	got, err := Receive(mem.BufferSlice{mem.SliceBuffer(head), mem.SliceBuffer(tail)})
	if err != nil {
		t.Fatalf("Receive(...): unexpected error: %v", err)
	}
	for _, buffer := range [][]byte{head, tail} {
		for i := range buffer {
			buffer[i] = 0xff
		}
	}
	compare(t, got, want)
}

// FuzzIndex looks for bytes that say something else to the stock codec.
func FuzzIndex(f *testing.F) {
	whole := wire(f, example(f))
	f.Add(whole)
	f.Add(slices.Concat(whole, whole))
	for _, e := range examples(f) {
		req := &fnv1.RunFunctionRequest{Observed: &fnv1.State{Composite: withParts(f, e.XR), Resources: map[string]*fnv1.Resource{}}}
		for i, o := range slices.Concat(e.Observed, e.Want) {
			req.Observed.Resources[strconv.Itoa(i)] = withParts(f, o)
		}
		f.Add(wire(f, req))
	}
	f.Add(part(requestObserved, part(stateComposite, part(resourceResource, nested(3)), part(resourceResource, nested(2)))))
	f.Fuzz(func(t *testing.T, raw []byte) {
		want := &fnv1.RunFunctionRequest{}
		if proto.Unmarshal(raw, want) != nil {
			// Credentials, schemas and connection details may be wrong: nothing of them is read.
			_, _ = parse(string(raw))
			return
		}
		got, err := parse(string(raw))
		if err != nil {
			t.Fatalf("parse(...): unexpected error: %v", err)
		}
		got.Meta, got.Desired = known(t, &fnv1.RunFunctionRequest{Meta: got.Meta}).GetMeta(), known(t, &fnv1.RunFunctionRequest{Desired: got.Desired}).GetDesired()
		compare(t, got, known(t, want))
	})
}
