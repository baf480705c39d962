package calls

// The conversions between PyTorch's layouts and channels last: of images between n×c×h×w and n×h×w×c, and of filters between
// f×c×i×j and i×j×c×f. HwoiTiles gives filters of i×j×f×c with the window reversed, as the gradient of the input takes them.
var (
	NhwcTiles = LayoutTiles{From: [4]int{0, 2, 3, 1}, Rows: []int{3}, Columns: []int{1, 2}, Outer: 0}
	NchwTiles = LayoutTiles{From: [4]int{0, 3, 1, 2}, Rows: []int{2, 3}, Columns: []int{1}, Outer: 0}
	HwioTiles = LayoutTiles{From: [4]int{2, 3, 1, 0}, Rows: []int{3}, Columns: []int{2, 0, 1}, Outer: -1}
	HwoiTiles = LayoutTiles{From: [4]int{2, 3, 0, 1}, Flipped: true, Rows: []int{3}, Columns: []int{0, 1}, Outer: 2}
	OihwTiles = LayoutTiles{From: [4]int{3, 2, 0, 1}, Rows: []int{1, 2, 3}, Columns: []int{0}, Outer: -1}
)

// LayoutTiles is a conversion. Dimension d of the output is dimension from[d] of the input;
// Flipped reverses the first two dimensions of the output. The dimensions of the output named by
// Rows are together its contiguous ones, those named by columns the contiguous ones of the input,
// each outermost first. outer is the remaining dimension, or -1.
type LayoutTiles struct {
	From          [4]int
	Flipped       bool
	Rows, Columns []int
	Outer         int
}
