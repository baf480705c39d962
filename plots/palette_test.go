package plots

import (
	"dahl/plots/paper"
	"image/color"
	"math"
	"testing"
)

// vision is what an eye makes of linear red, green and blue.
type vision [3][3]float64

// Common colour vision, and what remains of it without red or without green cones (Machado, Oliveira
// and Fernandes, A Physiologically-based Model for Simulation of Color Vision Deficiency, 2009).
var (
	allCones    = vision{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}
	colourBlind = []vision{
		{{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}},
		{{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}},
	}
)

// oklab is a colour where equal distances look equal (Ottosson, A perceptual color space for image
// processing, 2020). 0.02 is about the least difference that is seen side by side.
func (v *vision) oklab(c color.RGBA) (lab [3]float64) {
	var linear, seen, cones [3]float64
	for i, x := range [3]uint8{c.R, c.G, c.B} {
		if f := float64(x) / 255; f <= 0.04045 {
			linear[i] = f / 12.92
		} else {
			linear[i] = math.Pow((f+0.055)/1.055, 2.4)
		}
	}
	times := func(m *[3][3]float64, x, y *[3]float64) {
		for i, row := range m {
			y[i] = row[0]*x[0] + row[1]*x[1] + row[2]*x[2]
		}
	}
	times((*[3][3]float64)(v), &linear, &seen)
	for i := range seen {
		seen[i] = min(1, max(0, seen[i]))
	}
	times(&[3][3]float64{{0.4122214708, 0.5363325363, 0.0514459929}, {0.2119034982, 0.6806995451, 0.1073969566}, {0.0883024619, 0.2817188376, 0.6299787005}}, &seen, &cones)
	for i := range cones {
		cones[i] = math.Cbrt(cones[i])
	}
	times(&[3][3]float64{{0.2104542553, 0.7936177850, -0.0040720468}, {1.9779984951, -2.4285922050, 0.4505937099}, {0.0259040371, 0.7827717662, -0.8086757660}}, &cones, &lab)
	return lab
}

func (v *vision) distance(a, b color.RGBA) float64 {
	x, y := v.oklab(a), v.oklab(b)
	return math.Hypot(math.Hypot(x[0]-y[0], x[1]-y[1]), x[2]-y[2])
}

// White has lightness 1 and no hue; red is as Ottosson gives it.
func TestOklab(t *testing.T) {
	for c, want := range map[color.RGBA][3]float64{paper.White: {1, 0, 0}, {255, 0, 0, 255}: {0.628, 0.225, 0.126}} {
		for i, got := range allCones.oklab(c) {
			if math.Abs(got-want[i]) > 6e-4 {
				t.Errorf("%v is %v, want %v", c, allCones.oklab(c), want)
			}
		}
	}
}

// No colour of a task meets the tint of an idle cause or a state, on white or dark paper, for common
// and for red-green blind eyes; and tints differ where no hatch tells them apart.
func TestTasksAndTintsDiffer(t *testing.T) {
	c := newColouring(statedRun(t))
	tasks := append(palette[:len(palette):len(palette)], otherGrey)
	for name, fill := range map[string]func(int) color.RGBA{"white": func(i int) color.RGBA { return c.fills[i] }, "dark": c.dark} {
		for i := c.idle(0); i < c.categories(); i++ {
			for _, task := range append(tasks, fill(c.transfer()), fill(c.room())) {
				if d := allCones.distance(fill(i), task); d < 0.1 {
					t.Errorf("on %s paper category %d, %v, is %.3f from the task colour %v", name, i, fill(i), d, task)
				}
				for _, eye := range colourBlind {
					if d := eye.distance(fill(i), task); d < 0.07 {
						t.Errorf("on %s paper category %d, %v, is %.3f from the task colour %v to red-green blind eyes", name, i, fill(i), d, task)
					}
				}
			}
			for k := c.idle(0); k < i; k++ {
				if d := allCones.distance(fill(i), fill(k)); d < 0.04 && c.hatch(i) == c.hatch(k) {
					t.Errorf("on %s paper categories %d and %d are %.3f apart: %v and %v", name, k, i, d, fill(k), fill(i))
				}
			}
		}
	}
}
