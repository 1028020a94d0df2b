package file_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/ration-dev/ration/policy/file"
)

func TestDiff(t *testing.T) {
	before, err := parse(example)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("percent: 5", "percent: 6", "1000/s", "60000/min", "weight: 60", "weight: 61", "    wait: 200ms\n", "").Replace(example)
	after, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	got := file.Diff(&before[0], &after[0])
	want := file.Change{Budget: "acme/search", Kind: file.Modify, Fields: []file.FieldChange{
		{Field: "float (tokens)", From: "77", To: "117"},
		{Field: "limit.rate", From: "1000/s", To: "60000/min"},
		{Field: "over_admission.percent", From: "5", To: "6"},
		{Field: "regions.us.weight", From: "60", To: "61"},
		{Field: "wait", From: "200ms", To: ""},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if same := file.Diff(&before[0], &before[0]); same.Kind != file.Keep || same.Fields != nil {
		t.Errorf("with itself: %+v", same)
	}
	if c := file.Diff(nil, &before[0]); c.Kind != file.Add || len(c.Fields) == 0 {
		t.Errorf("new: %+v", c)
	}
	if c := file.Diff(&before[0], nil); c.Kind != file.Remove || c.Budget != "acme/search" {
		t.Errorf("gone: %+v", c)
	}
}
