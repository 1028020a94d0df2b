package sim

import (
	"reflect"
	"testing"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// full fills every field of a value, at any depth, with something: a field
// that is added later is filled too.
func full(v reflect.Value, n *int64) {
	*n++
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		full(v.Elem(), n)
	case reflect.Struct:
		for i := range v.NumField() {
			full(v.Field(i), n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			full(v.Index(i), n)
		}
	case reflect.Array:
		for i := range v.Len() {
			full(v.Index(i), n)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		full(key, n)
		full(value, n)
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString(string(rune('a' + *n%26)))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(float64(*n))
	case reflect.Int64, reflect.Int:
		v.SetInt(*n)
	case reflect.Uint8, reflect.Uint64:
		v.SetUint(uint64(*n % 200))
	default:
		panic("a message has a field of kind " + v.Kind().String())
	}
}

// shared names the first memory that two values have in common.
func shared(a, b reflect.Value, path string) string {
	switch a.Kind() {
	case reflect.Pointer, reflect.Map:
		if a.Pointer() == b.Pointer() {
			return path
		}
		if a.Kind() == reflect.Pointer {
			return shared(a.Elem(), b.Elem(), path)
		}
		for _, k := range a.MapKeys() {
			if at := shared(a.MapIndex(k), b.MapIndex(k), path+"[]"); at != "" {
				return at
			}
		}
	case reflect.Slice:
		if a.Pointer() == b.Pointer() {
			return path
		}
		fallthrough
	case reflect.Array:
		for i := range a.Len() {
			if at := shared(a.Index(i), b.Index(i), path+"[]"); at != "" {
				return at
			}
		}
	case reflect.Struct:
		for i := range a.NumField() {
			if at := shared(a.Field(i), b.Field(i), path+"."+a.Type().Field(i).Name); at != "" {
				return at
			}
		}
	}
	return ""
}

func testClone[T any](t *testing.T, clone func(T) T) {
	t.Helper()
	var original T
	var n int64
	full(reflect.ValueOf(&original).Elem(), &n)
	copied := clone(original)
	if !reflect.DeepEqual(original, copied) {
		t.Errorf("the copy of %T differs:\n%+v\n%+v", original, original, copied)
	}
	if at := shared(reflect.ValueOf(original), reflect.ValueOf(copied), reflect.TypeFor[T]().Name()); at != "" {
		t.Errorf("the copy shares %s", at)
	}
}

// Seen to fail when cloneReply copies the pointer of an item's error, and when
// cloneList leaves a budget's regions alone.
func TestMessagesAreCopiedCompletely(t *testing.T) {
	testClone[lease.SyncRequest](t, cloneRequest)
	testClone[lease.SyncReply](t, cloneReply)
	testClone[policy.List](t, cloneList)
}
