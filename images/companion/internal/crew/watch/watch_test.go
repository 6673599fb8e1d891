// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/crew"
)

func TestFinite(t *testing.T) {
	for _, loss := range []string{"nan", "NaN", "inf", "-Inf", "1e400", "tensor(nan)", "tensor(inf, device='cuda:0')"} {
		if Finite(loss) {
			t.Errorf("%q counts as finite", loss)
		}
	}
	for _, loss := range []string{"2.31", "1e-5", "tensor(0.5)", "", "none", "-3"} {
		if !Finite(loss) {
			t.Errorf("%q counts as not finite", loss)
		}
	}
}

func TestOutput(t *testing.T) {
	w, err := New(crew.Watch{})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		line string
		want crew.Progress
		none bool
	}{
		"Plain":        {line: "step=10 of=40 loss=2.5", want: crew.Progress{Step: 10, Of: 40, Loss: "2.5"}},
		"Slash":        {line: "Step 10/100 | loss 2.3e-1", want: crew.Progress{Step: 10, Of: 100, Loss: "2.3e-1"}},
		"Megatron":     {line: " iteration       10/  500 | lm loss: 1.23E+01 | loss scale: 1.0 |", want: crew.Progress{Step: 10, Of: 500, Loss: "1.23E+01"}},
		"Hugging Face": {line: "{'loss': nan, 'epoch': 0.5}", want: crew.Progress{Step: -1, Loss: "nan"}},
		"Bar":          {line: " 12%|█▏        | 120/1000 [00:10<01:20]", want: crew.Progress{Step: 120, Of: 1000}},
		"Settings":     {line: "max_steps: 1000, warmup steps 10", none: true},
		"Words":        {line: "no loss information", none: true},
	} {
		t.Run(name, func(t *testing.T) {
			got := w.Output(tc.line)
			if got.Advanced == tc.none {
				t.Fatalf("%q is progress: %t", tc.line, got.Advanced)
			}
			if diff := cmp.Diff(tc.want, got.Progress); !tc.none && diff != "" {
				t.Errorf("%q: -want, +got:\n%s", tc.line, diff)
			}
		})
	}
}

func TestFile(t *testing.T) {
	w, err := New(crew.Watch{})
	if err != nil {
		t.Fatal(err)
	}
	got := w.File([]byte(`{"step": 3, "of": 9.0, "loss": NaN, "checkpoint": "/c/3"}`))
	if diff := cmp.Diff(crew.Progress{Step: 3, Of: 9, Loss: "NaN", Checkpoint: "/c/3"}, got.Progress); diff != "" {
		t.Errorf("as Python writes it: -want, +got:\n%s", diff)
	}
	if got.Fault == nil || got.Fault.Class != crew.ClassNonFinite {
		t.Errorf("fault %+v, want NonFinite", got.Fault)
	}
	if w.File([]byte(`{"step": `)).Advanced {
		t.Error("half a line is progress")
	}
}
