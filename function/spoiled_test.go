// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
)

// composites are the folders of examples with composite resources.
var composites = []string{"algorithm", "database", "experiment", "pipeline", "preview", "training"}

// examples of requests: each with what it has observed, and with what it wants observed, too.
func examples(tb testing.TB) []*fnv1.RunFunctionRequest {
	tb.Helper()
	var all []*fnv1.RunFunctionRequest
	for _, kind := range composites {
		es, err := composetest.Examples("../examples/" + kind)
		if err != nil {
			tb.Fatal(err)
		}
		for _, name := range compose.SortedKeys(es) {
			e := es[name]
			before, after := requestOf(e), requestOf(e)
			for _, o := range e.Want {
				if n := compose.Text(o, "metadata", "annotations", "crossplane.io/composition-resource-name"); n != "" && after.GetObserved().GetResources()[n] == nil {
					after.Observed.Resources[n] = resourceOf(o)
				}
			}
			all = append(all, before, after)
		}
	}
	return all
}

// A spoiler changes requests at random: it removes, repeats and replaces parts of objects. What it puts there is often a part of another
// object, because that has names that the function reads.
type spoiler struct {
	*rand.Rand

	parts []*structpb.Value
}

// odd values that a schema refuses, or that are at the end of what it allows.
func odd() []*structpb.Value {
	var all []*structpb.Value
	for _, v := range []any{
		nil, true, 0.0, -1.0, 0.5, 1e18, 1e99, "", "0", "-5", "500m", "1Gi", "\u0000", "<b>", "$(x)", "2026-03-01T12:00:00Z", "9999-12-31T23:59:59Z",
		[]any{},
		map[string]any{},
		[]any{map[string]any{}},
	} {
		one, err := structpb.NewValue(v)
		if err != nil {
			panic(err)
		}
		all = append(all, one)
	}
	return all
}

// parts of a value, and the value itself.
func parts(v *structpb.Value) []*structpb.Value {
	all := []*structpb.Value{v}
	for _, key := range compose.SortedKeys(v.GetStructValue().GetFields()) {
		all = append(all, parts(v.GetStructValue().GetFields()[key])...)
	}
	for _, one := range v.GetListValue().GetValues() {
		all = append(all, parts(one)...)
	}
	return all
}

// pick another value.
func (s *spoiler) pick() *structpb.Value {
	from := s.parts
	if s.IntN(2) == 0 {
		from = odd()
	}
	return proto.CloneOf(from[s.IntN(len(from))])
}

// spoil a value somewhere, and return what is there then.
func (s *spoiler) spoil(v *structpb.Value) *structpb.Value {
	fields, list := v.GetStructValue().GetFields(), v.GetListValue()
	switch keys := compose.SortedKeys(fields); {
	case len(keys) > 0 && s.IntN(12) > 0:
		key := keys[s.IntN(len(keys))]
		switch s.IntN(8) {
		case 0:
			delete(fields, key)
		case 1:
			fields[keys[s.IntN(len(keys))]] = proto.CloneOf(fields[key])
		default:
			fields[key] = s.spoil(fields[key])
		}
		return v
	case len(list.GetValues()) > 0 && s.IntN(10) > 0:
		i := s.IntN(len(list.GetValues()))
		switch s.IntN(6) {
		case 0:
			list.Values = slices.Delete(list.GetValues(), i, i+1)
		case 1:
			list.Values = append(list.Values, proto.CloneOf(list.GetValues()[i]))
		default:
			list.Values[i] = s.spoil(list.GetValues()[i])
		}
		return v
	default:
		return s.pick()
	}
}

// request of the examples, spoiled.
func (s *spoiler) request(from []*fnv1.RunFunctionRequest) *fnv1.RunFunctionRequest {
	req := proto.CloneOf(from[s.IntN(len(from))])
	for range 1 + s.IntN(6) {
		target := req.GetObserved().GetComposite()
		if names := compose.SortedKeys(req.GetObserved().GetResources()); len(names) > 0 && s.IntN(3) > 0 {
			target = req.GetObserved().GetResources()[names[s.IntN(len(names))]]
		}
		if v := s.spoil(structpb.NewStructValue(target.GetResource())); v.GetStructValue() != nil {
			target.Resource = v.GetStructValue()
		}
	}
	return req
}

// FuzzSpoiled looks for objects much like those of the examples that make the function panic, or give two answers, or give another one
// than objects that were decoded whole. A spec that is not accepted must remove nothing.
func FuzzSpoiled(f *testing.F) {
	fn := newFunction(kinds(), func() time.Time { return now })
	from := examples(f)
	var all []*structpb.Value
	for _, req := range from {
		all = append(all, parts(structpb.NewStructValue(req.GetObserved().GetComposite().GetResource()))...)
		for _, name := range compose.SortedKeys(req.GetObserved().GetResources()) {
			all = append(all, parts(structpb.NewStructValue(req.GetObserved().GetResources()[name].GetResource()))...)
		}
	}
	for seed := range uint64(200) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		s := &spoiler{Rand: rand.New(rand.NewPCG(seed, 7)), parts: all}
		req := s.request(from)
		got := run(t, fn, req)
		if !bytes.Equal(deterministic(t, got), deterministic(t, run(t, fn, proto.CloneOf(req)))) {
			t.Error("two answers to one request differ")
		}
		if diff := cmp.Diff(got, answer(t, fn.Run(t.Context(), decoded(t, req))), protocmp.Transform()); diff != "" {
			t.Errorf("-answer to what is decoded where it is read, +to what was decoded whole:\n%s", diff)
		}
		if !notAccepted(got) {
			return
		}
		for name := range req.GetObserved().GetResources() {
			if got.GetDesired().GetResources()[name] == nil {
				t.Errorf("the spec is not accepted, and %q would be removed", name)
			}
		}
	})
}

// notAccepted reports whether an answer says that the spec is not accepted. Crossplane applies nothing of an answer that is fatal.
func notAccepted(rsp *fnv1.RunFunctionResponse) bool {
	for _, r := range rsp.GetResults() {
		if r.GetSeverity() == fnv1.Severity_SEVERITY_FATAL {
			return false
		}
	}
	for _, c := range rsp.GetConditions() {
		if c.GetType() == string(v1alpha1.TypeAccepted) && c.GetStatus() == fnv1.Status_STATUS_CONDITION_FALSE {
			return true
		}
	}
	return false
}
