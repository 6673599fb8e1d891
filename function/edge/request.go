// SPDX-License-Identifier: Apache-2.0

// Package edge is what the function speaks with Crossplane. It finds the objects of a request on the wire and decodes what is read of
// them, and it writes an answer's objects as they are planned. Both give what the stock codec gives, without building its messages.
package edge

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/capstan-dev/capstan/function/compose"
)

// A Request of Crossplane. Nothing of it changes when the buffers that it came in are used again.
type Request struct {
	// Meta and Desired are decoded whole: the first is small, and the second is empty unless there are earlier steps.
	Meta    *fnv1.RequestMeta
	Desired *fnv1.State

	// XR is the composite resource. It is nil in an Operation.
	XR *Object

	// Observed holds the composed objects that exist, by their names within the composition.
	Observed map[string]compose.Object

	// Required holds what Crossplane found of what was required, by the names that it was required under.
	Required map[string][]*Object

	// Served reports of the schemas that Crossplane looked for whether it found them.
	Served map[string]bool

	// Input and Context are nil where there is none.
	Input, Context *Object
}

// Numbers of the fields of a request and of what is in it.
const (
	requestMeta        protowire.Number = 1
	requestObserved    protowire.Number = 2
	requestDesired     protowire.Number = 3
	requestInput       protowire.Number = 4
	requestContext     protowire.Number = 5
	requestCredentials protowire.Number = 7
	requestResources   protowire.Number = 8
	requestSchemas     protowire.Number = 9

	stateComposite protowire.Number = 1
	stateResources protowire.Number = 2

	resourceResource   protowire.Number = 1
	resourceConnection protowire.Number = 2

	resourcesItems  protowire.Number = 1
	schemaOpenAPIV3 protowire.Number = 1
)

// Receive a request from the buffers that it came in. They are not kept.
func Receive(data mem.BufferSlice) (*Request, error) {
	var b strings.Builder
	b.Grow(data.Len())
	for _, part := range data {
		_, _ = b.Write(part.ReadOnlyData())
	}
	return parse(b.String())
}

// Read a request that is decoded already.
func Read(req *fnv1.RunFunctionRequest) (*Request, error) {
	raw, err := proto.Marshal(req)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the request: %w", err)
	}
	return parse(string(raw))
}

// parse a request. One that no codec would write so, which may be valid nevertheless, is decoded and written again by the stock codec
// first. So there is one way to read it, and no doubt about what it says.
func parse(wire string) (*Request, error) {
	if r := (&Request{}); r.index(wire, true) {
		return r, nil
	}
	req := &fnv1.RunFunctionRequest{}
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal([]byte(wire), req); err != nil {
		return nil, fmt.Errorf("cannot decode the request: %w", err)
	}
	raw, err := proto.Marshal(req)
	if err != nil {
		return nil, fmt.Errorf("cannot write the request again: %w", err)
	}
	r := &Request{}
	if !r.index(string(raw), false) {
		return nil, errors.New("cannot read the request: it is no RunFunctionRequest")
	}
	return r, nil
}

// index a request. It reports false for one that has to be written again. Objects are not checked if the stock codec wrote them.
func (r *Request) index(wire string, check bool) bool {
	r.Observed, r.Required, r.Served = map[string]compose.Object{}, map[string][]*Object{}, map[string]bool{}
	return each(wire, []protowire.Number{requestCredentials, requestResources, requestSchemas}, func(n protowire.Number, part string) bool {
		switch n {
		case requestMeta:
			r.Meta = &fnv1.RequestMeta{}
			return proto.Unmarshal([]byte(part), r.Meta) == nil
		case requestObserved:
			return r.observed(part, check)
		case requestDesired:
			r.Desired = &fnv1.State{}
			return proto.Unmarshal([]byte(part), r.Desired) == nil
		case requestInput:
			return read(&r.Input, part, check)
		case requestContext:
			return read(&r.Context, part, check)
		case requestResources:
			return r.required(part, check)
		case requestSchemas:
			return r.schema(part)
		default:
			return true
		}
	})
}

// observed State.
func (r *Request) observed(wire string, check bool) bool {
	return each(wire, []protowire.Number{stateResources}, func(n protowire.Number, part string) bool {
		switch n {
		case stateComposite:
			return resource(&r.XR, part, check)
		case stateResources:
			name, value, ok := entry(part)
			o := &Object{}
			ok = ok && resource(&o, value, check)
			r.Observed[name] = o
			return ok
		default:
			return true
		}
	})
}

// required Resources of a name.
func (r *Request) required(wire string, check bool) bool {
	name, found, ok := entry(wire)
	var all []*Object
	ok = ok && each(found, []protowire.Number{resourcesItems}, func(n protowire.Number, part string) bool {
		if n != resourcesItems {
			return true
		}
		o := &Object{}
		all = append(all, o)
		return resource(&all[len(all)-1], part, check)
	})
	r.Required[name] = all
	return ok
}

// schema of a name. It is large, and nothing of it counts but whether it is empty.
func (r *Request) schema(wire string) bool {
	name, schema, ok := entry(wire)
	r.Served[name] = false
	return ok && each(schema, nil, func(n protowire.Number, part string) bool {
		if n == schemaOpenAPIV3 {
			r.Served[name] = count(part) > 0
		}
		return true
	})
}

// resource is the object of a Resource, if it has one.
func resource(o **Object, wire string, check bool) bool {
	return each(wire, []protowire.Number{resourceConnection}, func(n protowire.Number, part string) bool {
		return n != resourceResource || read(o, part, check)
	})
}

// read an object.
func read(o **Object, wire string, check bool) bool {
	*o = &Object{raw: wire}
	return !check || plainStruct(wire, 0)
}

// each field of a message that has a length. The others are numbers that nothing looks at. It ends at the first that is not taken, and
// at one that comes again and is not repeated: the stock codec merges the two.
func each(wire string, repeated []protowire.Number, take func(protowire.Number, string) bool) bool {
	var seen uint64
	for c := cursor(wire); c != ""; {
		f, ok := c.next()
		if !ok {
			return false
		}
		if f.kind != protowire.BytesType {
			continue
		}
		bit := uint64(1) << min(f.number, 63)
		if seen&bit != 0 && !slices.Contains(repeated, f.number) && f.number < 63 {
			return false
		}
		seen |= bit
		if !take(f.number, f.text) {
			return false
		}
	}
	return true
}
