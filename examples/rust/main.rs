// Classifies two flowers with the library that ../c/build.py wrote. The declarations follow net/net.h and DLPack.
use std::ffi::{c_char, c_void, CStr};
use std::ptr::{null, null_mut};

#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device: [i32; 2],
    rank: i32,
    dtype: u32, // code, bits, and lanes in the upper half
    shape: *const i64,
    strides: *const i64,
    byte_offset: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
union Payload {
    number: i64,
    text: *const c_char,
    tensor: *const Tensor,
    items: *const Value,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Value {
    kind: i64,
    payload: Payload,
    count: i64,
}

#[link(name = "net")]
extern "C" {
    fn net_open(weights: *const c_char, instance: *mut *mut c_void) -> i32;
    fn net_close(instance: *mut c_void);
    fn net_error(instance: *const c_void) -> *const c_char;
    fn net_free(value: *mut Value);
    fn net_forward(instance: *mut c_void, arguments: *const Value, count: i64, result: *mut Value) -> i32;
}

const TENSOR: i64 = 5;
const FLOAT32: u32 = 2 | 32 << 8 | 1 << 16;

struct Net(*mut c_void);

impl Net {
    fn open(weights: &CStr) -> Result<Net, String> {
        let mut net = Net(null_mut());
        let code = unsafe { net_open(weights.as_ptr(), &mut net.0) };
        if code == 0 { Ok(net) } else { Err(net.error()) }
    }

    /// Return the names of the most probable classes of some flowers.
    fn forward(&mut self, flowers: &mut [[f32; 4]]) -> Result<Vec<String>, String> {
        let shape = [flowers.len() as i64, 4];
        let data = flowers.as_mut_ptr().cast();
        let x = Tensor { data, device: [1, 0], rank: 2, dtype: FLOAT32, shape: shape.as_ptr(), strides: null(), byte_offset: 0 };
        let argument = Value { kind: TENSOR, payload: Payload { tensor: &x }, count: 1 };
        let mut result = Value { kind: 0, payload: Payload { number: 0 }, count: 0 };
        unsafe {
            if net_forward(self.0, &argument, 1, &mut result) != 0 {
                return Err(self.error());
            }
            let names = *result.payload.items.add(1);
            let found = (0..names.count as usize).map(|row| {
                CStr::from_ptr((*names.payload.items.add(row)).payload.text).to_string_lossy().into_owned()
            });
            let found = found.collect();
            net_free(&mut result);
            Ok(found)
        }
    }

    fn error(&self) -> String {
        unsafe { CStr::from_ptr(net_error(self.0)).to_string_lossy().into_owned() }
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        unsafe { net_close(self.0) }
    }
}

fn main() -> Result<(), String> {
    let mut net = Net::open(c"net/net.weights")?;
    for name in net.forward(&mut [[5.1, 3.5, 1.4, 0.2], [6.7, 3.0, 5.2, 2.3]])? {
        println!("{name}");
    }
    Ok(())
}
