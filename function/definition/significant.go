// SPDX-License-Identifier: Apache-2.0

package definition

// Significant part of a spec: without values that mean the same as none, by their paths (see Definition.Fields), and without what is
// empty by then. It is nil when nothing is left.
func Significant(spec map[string]any, usual map[string]any) any { return significant("", spec, usual) }

// significant part of the value at a path.
func significant(path string, value any, usual map[string]any) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, below := range v {
			at := k
			if path != "" {
				at = path + "." + k
			}
			if b := significant(at, below, usual); b != nil {
				out[k] = b
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case []any:
		if len(v) == 0 {
			return nil
		}
		out := make([]any, 0, len(v))
		for _, item := range v {
			out = append(out, significant(path+"[]", item, usual))
		}
		return out
	default:
		if u := usual[path]; u != nil && u == value {
			return nil
		}
		return value
	}
}
