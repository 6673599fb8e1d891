// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	lua "github.com/yuin/gopher-lua"
)

// health as a tool tells it.
type health struct{ Status, Message string }

// argo runs a health check as Argo CD does: with a second of time, and unless open libraries are asked for with no more than
// the base library and that of tables.
func argo(t *testing.T, script string, open bool, o map[string]any) health {
	t.Helper()
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer l.Close()
	libraries := map[string]lua.LGFunction{lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable}
	if open {
		libraries[lua.StringLibName] = lua.OpenString
	}
	for name, f := range libraries {
		if err := l.CallByParam(lua.P{Fn: l.NewFunction(f), Protect: true}, lua.LString(name)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	l.SetContext(ctx)
	l.SetGlobal("obj", value(l, o))
	if err := l.DoString(script); err != nil {
		t.Fatalf("the script fails: %v", err)
	}
	result, ok := l.Get(-1).(*lua.LTable)
	if !ok {
		t.Fatalf("the script returns a %s, and Argo CD wants a table", l.Get(-1).Type())
	}
	h := health{lua.LVAsString(result.RawGetString("status")), lua.LVAsString(result.RawGetString("message"))}
	switch h.Status {
	case "Healthy", "Progressing", "Degraded", "Suspended":
	default:
		t.Fatalf("%q is no health of Argo CD", h.Status)
	}
	return h
}

// value in Lua.
func value(l *lua.LState, v any) lua.LValue {
	switch v := v.(type) {
	case bool:
		return lua.LBool(v)
	case float64:
		return lua.LNumber(v)
	case int64:
		return lua.LNumber(v)
	case string:
		return lua.LString(v)
	case []any:
		list := l.NewTable()
		for _, e := range v {
			list.Append(value(l, e))
		}
		return list
	case map[string]any:
		table := l.NewTable()
		for k, e := range v {
			table.RawSetString(k, value(l, e))
		}
		return table
	default:
		return lua.LNil
	}
}

// expressions of a kind in spec.healthCheckExprs of a Kustomization.
type expressions struct{ APIVersion, Kind, InProgress, Failed, Current string }

var errNotBoolean = errors.New("is not a boolean")

// evaluate one expression in the environment of Flux, in which the fields of the object are variables.
func evaluate(expression string, o map[string]any) (bool, error) {
	env, err := cel.NewEnv(cel.HomogeneousAggregateLiterals(), cel.EagerlyValidateDeclarations(true), cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true), ext.Strings(), ext.Sets(), ext.Encoders())
	if err != nil {
		return false, fmt.Errorf("cannot make an environment: %w", err)
	}
	parsed, issues := env.Parse(expression)
	if issues.Err() != nil {
		return false, fmt.Errorf("cannot parse: %w", issues.Err())
	}
	program, err := env.Program(parsed)
	if err != nil {
		return false, fmt.Errorf("cannot make a program: %w", err)
	}
	out, _, err := program.Eval(o)
	if err != nil {
		return false, fmt.Errorf("cannot evaluate: %w", err)
	}
	is, ok := out.Value().(bool)
	if !ok {
		return false, errNotBoolean
	}
	return is, nil
}

// flux takes the first expression that is true, in the order of Flux. An object without a status cannot be evaluated, and Flux
// waits for one.
func flux(t *testing.T, e expressions, o map[string]any) string {
	t.Helper()
	for _, c := range []struct{ expression, status string }{{e.InProgress, "InProgress"}, {e.Failed, "Failed"}, {e.Current, "Current"}} {
		if c.expression == "" {
			continue
		}
		is, err := evaluate(c.expression, o)
		if err != nil && o["status"] != nil {
			t.Fatalf("%s: %v\n%s", c.status, err, c.expression)
		}
		if is {
			return c.status
		}
	}
	return "InProgress"
}
